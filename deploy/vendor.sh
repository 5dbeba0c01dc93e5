#!/bin/sh
# Copy the pinned browser libraries into static/vendor. Needs npm; nothing else of Trainhall does.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$(sed -n 's/.*"plotly.js": "\([0-9.]*\)".*/\1/p' "$here/package.json")
cd "$work"
npm pack --silent "plotly.js@$version"
tar xzf "plotly.js-$version.tgz" package/dist/plotly-basic.min.js package/LICENSE
mkdir -p "$here/static/vendor/plotly"
cp package/dist/plotly-basic.min.js package/LICENSE "$here/static/vendor/plotly/"
