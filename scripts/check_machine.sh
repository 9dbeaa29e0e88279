#!/usr/bin/env bash
# Is this machine fit? One clear line for each thing that is missing.
set -euo pipefail
local_folder=$1

stop() { echo "$*" >&2; exit 1; }

python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || stop "Python 3.11 is needed and there is no python3: install it, then type the command again."
[ "$python" = 3.11 ] || stop "Python 3.11 is needed, python3 is $python: put Python 3.11 first on the PATH, then type the command again."
command -v java > /dev/null || stop "Java 17 or 21 is needed and there is no java: install it (Debian: apt-get install openjdk-17-jre-headless), then type the command again."
java=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -1)
[ "$java" = 17 ] || [ "$java" = 21 ] || stop "Java 17 or 21 is needed, java is ${java:-of an unknown version}: put the right one first on the PATH, then type the command again."
mkdir -p "$local_folder" || stop "$local_folder cannot be made: the project's folder must be writable."
free=$(df -Pm "$local_folder" | awk 'NR == 2 {print $4}')
[ "$free" -ge 4096 ] || stop "4 GB of free disk space are needed below $local_folder, $free MB are left: make room, then type the command again."
