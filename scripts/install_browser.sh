#!/usr/bin/env bash
# Chromium for the tests that walk through Airflow's pages: what is there, else Debian's where this may install it. Without it those tests are skipped, and say so.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" > /dev/null; then exit 0; fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
  echo "set-up: Chromium, from Debian" >&2
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null && exit 0
fi
echo "no Chromium is here, and it could not be installed: the tests that walk through Airflow's pages will be skipped" >&2
