# Sourced by the scripts beside it. What they say goes to stderr; stdout carries only the result that the caller reads.
set -euo pipefail

MYSQL_SUITE=sid                  # the Debian suite that carries MySQL 9.7
MYSQL_IMAGE=mysql:9              # the public image, used when it can be pulled
KAFKA_VERSION=4.3.1
OLD_KAFKA_VERSION=3.9.2          # the last line without transaction.version 2
DEBEZIUM_VERSION=3.6.1.Final
SLF4J_VERSION=1.7.36
APICURIO_VERSION=2.4.2.Final     # the newest registry whose published jars make a whole one
APICURIO_CONVERTER_VERSION=2.6.13.Final
FASTAVRO_VERSION=1.13.1
CONFLUENT_KAFKA_VERSION=2.16.1

# What takes long to make and does not change is kept here, by version, for all clones of one user.
CACHE=${TIDEMARK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemark}
mkdir -p "$CACHE"

say() { echo "it/images: $*" >&2; }
die() { say "$*"; exit 1; }

# alone SCRIPT: one run of a script at a time, since two test packages may ask for the same image at once.
alone() { exec 9>"$CACHE/$1.lock"; flock 9; }

# need COMMAND PACKAGE...: installs Debian packages when the command is missing, as root on Debian only. One at a time.
need() {
  command -v "$1" >/dev/null || (flock 8; install "$@") 8>"$CACHE/apt.lock"
}
install() {
  local c=$1; shift
  command -v "$c" >/dev/null && return
  [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] ||
    die "the command $c is missing; install the Debian packages: $* (or their like on this system)"
  say "installing $*, since $c is missing"
  # The index may be unreachable in part (a third-party source), so only the installation decides.
  apt-get update -qq >&2 || true
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >"$CACHE/apt.log" 2>&1 ||
    die "could not install $*; see $CACHE/apt.log"
}

have_image() { docker image inspect "$1" >/dev/null 2>&1; }

# pulled IMAGE: true when the public image is here or can be pulled now.
pulled() {
  have_image "$1" && return
  timeout 300 docker pull -q "$1" >/dev/null 2>&1
}

# jars NAME group:artifact:version...: puts these jars and what they depend on into $CACHE/NAME, once. One at a time: Maven's
# repository is shared.
jars() {
  [ -d "$CACHE/$1" ] || (flock 7; fetch "$@") 7>"$CACHE/maven.lock"
}
fetch() {
  local name=$1; shift
  [ -d "$CACHE/$name" ] && return
  need java default-jre-headless
  need mvn maven
  say "fetching $name with Maven"
  local work; work=$(mktemp -d "$CACHE/maven.XXXXXX")
  {
    echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    echo "<groupId>tidemark.it</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging><dependencies>"
    for spec in "$@"; do
      IFS=: read -r group artifact version <<<"$spec"
      echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
    done
    echo '</dependencies></project>'
  } >"$work/pom.xml"
  (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=libs) >"$CACHE/maven.log" 2>&1 ||
    die "Maven could not fetch $name; see $CACHE/maven.log"
  mv "$work/libs" "$CACHE/$name"
  rm -rf "$work"
}

# debian_root FOLDER SUITE PACKAGES: a minimal Debian with these packages, made by debootstrap.
debian_root() {
  [ "$(id -u)" = 0 ] || die "building an image needs root (debootstrap); or make the public images available to docker"
  need debootstrap debootstrap
  rm -rf "$1"
  debootstrap --variant=minbase --include="$3" "$2" "$1" >"$1.log" 2>&1 || die "debootstrap failed; see $1.log"
}

# import_root FOLDER IMAGE [CHANGE...]: makes an image of a root folder and removes the folder.
import_root() {
  local root=$1 image=$2; shift 2
  local changes=(); for c in "$@"; do changes+=(--change "$c"); done
  tar -C "$root" --exclude=./var/cache/apt/archives --exclude=./var/lib/apt/lists --exclude=./usr/share/doc \
    --exclude=./usr/share/man --exclude=./usr/share/locale -c . | docker import "${changes[@]}" - "$image" >/dev/null
  rm -rf "$root"
}
