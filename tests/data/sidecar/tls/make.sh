#!/bin/sh
# Makes the certificates of the TLS tests anew: two authorities, what they signed, and a key with a password.
# For tests on one machine alone: the keys are no secrets. Good from 2020 to 2120, whatever the clock of a machine says.
set -eu
cd "$(dirname "$0")"
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

cat >"$WORK/conf" <<END
[ca]
default_ca = one
[one]
database = $WORK/index
new_certs_dir = $WORK
rand_serial = yes
default_md = sha256
unique_subject = no
policy = any
[any]
commonName = supplied
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[signed]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
subjectAltName = \${ENV::SAN}
END
: >"$WORK/index"

made() { # NAME EXTENSIONS SAN, then how it is signed
    name=$1 extensions=$2 SAN=$3
    export SAN
    shift 3
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -keyout "$name.key" -out "$WORK/csr" -subj "/CN=$name" 2>/dev/null
    openssl ca -config "$WORK/conf" -batch -notext -extensions "$extensions" -in "$WORK/csr" -out "$name.pem" \
        -startdate 20200101000000Z -enddate 21200101000000Z "$@" 2>/dev/null
}

authority() { made "$1" authority "DNS:unused" -selfsign -keyfile "$1.key"; }
signed() { made "$1" signed "$3" -cert "$2.pem" -keyfile "$2.key"; }

HERE="DNS:localhost,IP:127.0.0.1,IP:::1"
authority authority
authority stranger
signed server authority "$HERE"
signed renewed authority "$HERE"
signed engine authority "DNS:engine.test"
signed client authority "DNS:client.test"
signed intruder stranger "DNS:client.test"
openssl ec -in server.key -aes256 -passout pass:secret -out locked.key 2>/dev/null
rm authority.key stranger.key
chmod 644 ./*.key
