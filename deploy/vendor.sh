#!/bin/sh
# Copy the pinned browser libraries into static/vendor, checked against package-lock.json. Needs npm; nothing else of Trainhall does.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

locked() {
  node -p "require('$here/package-lock.json').packages['node_modules/plotly.js'].$1"
}

cd "$work"
version=$(locked version)
npm pack --silent "plotly.js@$version" >/dev/null
archive="plotly.js-$version.tgz"
node -e "
  const body = require('fs').readFileSync('$archive');
  const found = 'sha512-' + require('crypto').createHash('sha512').update(body).digest('base64');
  if (found !== '$(locked integrity)') { console.error('$archive is not what package-lock.json says.'); process.exit(1); }
"
tar xzf "$archive" package/dist/plotly-basic.min.js package/LICENSE
mkdir -p "$here/static/vendor/plotly"
cp package/dist/plotly-basic.min.js package/LICENSE "$here/static/vendor/plotly/"
