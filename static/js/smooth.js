// Exponential smoothing as TensorBoard does it: debiased, non-finite points skipped, a constant series left alone.
export function smooth(values, weight) {
  if (!weight) return values;
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.every((value) => value === finite[0])) return values;
  let last = 0;
  let count = 0;
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    last = last * weight + (1 - weight) * value;
    count += 1;
    return last / (1 - weight ** count);
  });
}
