#!/bin/sh
# Copy the pinned browser libraries into static/vendor, checked against package-lock.json. Needs npm; nothing else of Trainhall does.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fetch PACKAGE: its files, below $work/PACKAGE
fetch() {
  locked() {
    node -p "require('$here/package-lock.json').packages['node_modules/$package'].$1"
  }
  package=$1
  mkdir -p "$work/$package"
  cd "$work/$package"
  archive=$(npm pack --silent "$package@$(locked version)")
  node -e "
    const body = require('fs').readFileSync('$archive');
    const found = 'sha512-' + require('crypto').createHash('sha512').update(body).digest('base64');
    if (found !== '$(locked integrity)') { console.error('$archive is not what package-lock.json says.'); process.exit(1); }
  "
  tar xzf "$archive" --strip-components=1
}

fetch plotly.js
mkdir -p "$here/static/vendor/plotly"
cp dist/plotly-basic.min.js LICENSE "$here/static/vendor/plotly/"

fetch @xterm/xterm
mkdir -p "$here/static/vendor/xterm"
cp lib/xterm.mjs css/xterm.css LICENSE "$here/static/vendor/xterm/"

fetch @xterm/addon-fit
cp lib/addon-fit.mjs "$here/static/vendor/xterm/"
cp LICENSE "$here/static/vendor/xterm/LICENSE.addon-fit"
