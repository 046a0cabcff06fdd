#!/bin/sh
# Installs Longhaul for this user, without root: sh install.sh [--uninstall]
#
#   LONGHAUL_RELEASES   where releases are: an URL with `latest/download/FILE` and `download/vVERSION/FILE` below it.
#                       There is no public home yet, so it has to be set, here or in the environment.
#   LONGHAUL_VERSION    the version, such as 0.1.0. Default: the newest.
#   LONGHAUL_BIN        the directory of the program. Default: ~/.local/bin
#
# The archive is used only when its SHA-256 digest is the one of SHA256SUMS, and, where `minisign` is installed and the
# key below is set, when SHA256SUMS is signed with that key. The program is renamed into its place, so a server that runs
# goes on, and what is there stays when anything fails.

set -eu

# The only line that names the public home.
RELEASES="${LONGHAUL_RELEASES:-}"
# The key that releases are signed with, as `minisign -p` writes it; empty until there is one.
PUBLIC_KEY="${LONGHAUL_PUBLIC_KEY:-}"

case "${LONGHAUL_VERSION:-}" in
    "") RELEASE="$RELEASES/latest/download" ;;
    *) RELEASE="$RELEASES/download/v$LONGHAUL_VERSION" ;;
esac
TARGET=x86_64-unknown-linux-gnu

fail() {
    echo "install.sh: $*" >&2
    exit 1
}

main() {
    [ -n "${HOME:-}" ] || [ -n "${LONGHAUL_BIN:-}" ] || fail "there is no home directory; name a directory with LONGHAUL_BIN"
    BIN="${LONGHAUL_BIN:-${HOME:-}/.local/bin}"
    case "${1:-}" in
        "") install ;;
        --uninstall) uninstall ;;
        *) fail "unknown argument \`$1\`; write: sh install.sh [--uninstall]" ;;
    esac
}

install() {
    check_machine
    [ -n "$RELEASES" ] || fail "no place of releases is set; name one: LONGHAUL_RELEASES=https://... sh install.sh"
    for tool in tar sed mktemp; do
        command -v "$tool" >/dev/null 2>&1 || fail "\`$tool\` is missing; install it first"
    done
    mkdir -p "$BIN" 2>/dev/null || fail "cannot make \`$BIN\`; choose another directory with LONGHAUL_BIN"
    # In the directory itself, since a rename works within one file system alone.
    WORK="$(mktemp -d "$BIN/.longhaul-install.XXXXXX" 2>/dev/null)" \
        || fail "cannot write to \`$BIN\`; choose another directory with LONGHAUL_BIN"
    trap 'rm -rf "$WORK"' EXIT
    trap 'exit 1' HUP INT TERM

    fetch SHA256SUMS
    check_signature
    archive="$(sed -n "s/^[0-9a-f]\{64\}  \(longhaul-[0-9A-Za-z.+-]*-$TARGET\.tar\.gz\)\$/\1/p" "$WORK/SHA256SUMS" | head -n 1)"
    [ -n "$archive" ] || fail "SHA256SUMS at $RELEASE names no archive for $TARGET"
    fetch "$archive"
    check_digest "$archive"

    mkdir "$WORK/unpacked"
    tar -xzf "$WORK/$archive" -C "$WORK/unpacked" --strip-components=1 || fail "\`$archive\` cannot be unpacked"
    [ -f "$WORK/unpacked/longhaul" ] || fail "\`$archive\` has no program in it"
    chmod 755 "$WORK/unpacked/longhaul"
    # A program that does not start here must not replace one that does.
    installed="$("$WORK/unpacked/longhaul" --version 2>&1)" \
        || fail "the program does not start on this machine: $installed"
    mv -f "$WORK/unpacked/longhaul" "$BIN/longhaul" || fail "cannot write \`$BIN/longhaul\`"
    completions "$WORK/unpacked"

    echo "installed $installed as $BIN/longhaul"
    case ":${PATH:-}:" in
        *":$BIN:"*) ;;
        *) echo "add it to your path: export PATH=\"$BIN:\$PATH\"" ;;
    esac
    echo "next: longhaul doctor    # what this machine has and lacks"
    echo "a longhaul that was running goes on with the older program until it is started again"
}

check_machine() {
    system="$(uname -s) $(uname -m)"
    [ "$system" = "Linux x86_64" ] || fail "there is no release for $system, only for Linux x86_64; build it from source"
    # Other C libraries, such as musl, have no such line.
    glibc="$(ldd --version 2>&1 | sed -n '1s/.* \([0-9]*\.[0-9]*\)$/\1/p')"
    [ -n "$glibc" ] || fail "this system has no glibc, which the program needs; build it from source"
    older="$(printf '%s\n2.28\n' "$glibc" | sort -t . -k 1,1n -k 2,2n | head -n 1)"
    [ "$older" = 2.28 ] || fail "glibc here is $glibc, and the program needs 2.28 or newer"
}

# Fetches a file of the release into $WORK.
fetch() {
    url="$RELEASE/$1"
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --output "$WORK/$1" "$url" || fail "cannot fetch $url"
    elif command -v wget >/dev/null 2>&1; then
        wget --quiet --output-document "$WORK/$1" "$url" || fail "cannot fetch $url"
    else
        fail "neither curl nor wget is here; install one of them"
    fi
}

check_signature() {
    [ -n "$PUBLIC_KEY" ] || return 0
    if ! command -v minisign >/dev/null 2>&1; then
        echo "minisign is not here, so the digests are checked and their signature is not" >&2
        return 0
    fi
    fetch SHA256SUMS.minisig
    minisign -Vq -P "$PUBLIC_KEY" -m "$WORK/SHA256SUMS" -x "$WORK/SHA256SUMS.minisig" \
        || fail "SHA256SUMS at $RELEASE is not signed with the key of Longhaul; nothing was installed"
}

check_digest() {
    expected="$(sed -n "s/^\([0-9a-f]\{64\}\)  $1\$/\1/p" "$WORK/SHA256SUMS" | head -n 1)"
    if command -v sha256sum >/dev/null 2>&1; then
        found="$(sha256sum "$WORK/$1" | sed 's/ .*//')"
    elif command -v shasum >/dev/null 2>&1; then
        found="$(shasum -a 256 "$WORK/$1" | sed 's/ .*//')"
    else
        fail "neither sha256sum nor shasum is here, so the archive cannot be checked; install coreutils"
    fi
    [ "$found" = "$expected" ] \
        || fail "\`$1\` has the digest $found, and SHA256SUMS says $expected; nothing was installed"
}

# Where each shell looks for them; a directory that cannot be written costs completions and nothing else.
completions() {
    [ -n "${HOME:-}" ] || return 0
    data="${XDG_DATA_HOME:-$HOME/.local/share}"
    put "$1/completions/longhaul.bash" "$data/bash-completion/completions/longhaul"
    put "$1/completions/longhaul.fish" "$data/fish/vendor_completions.d/longhaul.fish"
    put "$1/completions/_longhaul" "$data/zsh/site-functions/_longhaul"
    for page in "$1"/man/*.1; do
        put "$page" "$data/man/man1/${page##*/}"
    done
}

put() {
    [ -f "$1" ] || return 0
    { mkdir -p "${2%/*}" && cp "$1" "$2"; } 2>/dev/null || true
}

uninstall() {
    [ -e "$BIN/longhaul" ] || fail "there is no \`$BIN/longhaul\`"
    rm -f "$BIN/longhaul" || fail "cannot remove \`$BIN/longhaul\`"
    if [ -n "${HOME:-}" ]; then
        data="${XDG_DATA_HOME:-$HOME/.local/share}"
        rm -f "$data/bash-completion/completions/longhaul" "$data/fish/vendor_completions.d/longhaul.fish" \
            "$data/zsh/site-functions/_longhaul" "$data/man/man1/longhaul.1" "$data"/man/man1/longhaul-*.1
        echo "removed; runs and settings stay in $data/longhaul, and what can be made again in ${XDG_CACHE_HOME:-$HOME/.cache}/longhaul"
    else
        echo "removed"
    fi
}

# Called last, so that a script that arrived in part does nothing.
main "$@"
