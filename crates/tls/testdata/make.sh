#!/bin/sh
# Makes the stores of the tests with the JDK's keytool (17). Passwords: `cassandra`, unless a name says otherwise.
set -eu
cd "$(dirname "$0")"
rm -f ./*.jks ./*.p12 ./*.pem
P="-storepass cassandra -keypass cassandra"
V="-validity 36500 -noprompt"
keytool -genkeypair -alias ca -keyalg EC -groupname secp256r1 -dname CN=CA -ext bc:c=ca:true $V -storetype JKS -keystore ca.jks $P
keytool -exportcert -alias ca -keystore ca.jks $P -rfc -file ca.pem
# $1: file, $2: type, $3…: of the key
node() {
    file=$1 type=$2
    shift 2
    keytool -genkeypair -alias node "$@" -dname CN=localhost,OU=Test -ext san=dns:localhost,ip:127.0.0.1 $V -storetype "$type" -keystore "$file" $P
    keytool -certreq -alias node -keystore "$file" $P -file request.tmp
    keytool -gencert -alias ca -keystore ca.jks $P -infile request.tmp -outfile reply.tmp -rfc -validity 36500 \
        -ext san=dns:localhost,ip:127.0.0.1,uri:https://first,uri:spiffe://cluster/node,uri:spiffe://second
    keytool -importcert -alias ca -file ca.pem -keystore "$file" $P -noprompt
    keytool -importcert -alias node -file reply.tmp -keystore "$file" $P -noprompt
    rm request.tmp reply.tmp
}
node node.jks JKS -keyalg RSA -keysize 2048
node node.p12 PKCS12 -keyalg EC -groupname secp384r1
node legacy.p12 PKCS12 -keyalg EC -groupname secp256r1 -J-Dkeystore.pkcs12.legacy
keytool -importkeystore -srckeystore node.jks -srcstorepass cassandra -destkeystore keypass.jks -deststoretype JKS -deststorepass cassandra \
    -srcalias node -srckeypass cassandra -destkeypass different -noprompt
for type in JKS PKCS12; do
    name=trust.$(echo $type | sed 's/JKS/jks/; s/PKCS12/p12/')
    keytool -importcert -alias ca -file ca.pem -storetype $type -keystore "$name" -storepass cassandra -noprompt
done
openssl pkcs12 -in node.p12 -passin pass:cassandra -nodes -nocerts -out key.tmp
openssl pkcs12 -in node.p12 -passin pass:cassandra -nokeys -clcerts -out chain.tmp
{ openssl pkcs8 -topk8 -nocrypt -in key.tmp; cat chain.tmp ca.pem; } > node.pem
{ openssl pkcs8 -topk8 -v2 aes-256-cbc -passout pass:cassandra -in key.tmp; cat chain.tmp ca.pem; } > encrypted.pem
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj /CN=stranger -addext subjectAltName=DNS:localhost \
    -keyout key.tmp -out chain.tmp
cat key.tmp chain.tmp > stranger.pem
rm key.tmp chain.tmp
