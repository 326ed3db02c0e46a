#!/bin/sh
# Makes the stores of this folder anew, with openssl 3 and a JDK's keytool. Nothing trusts their keys.
set -e
rm -f ./*.pem ./*.key ./*.p12 ./*.jks ./*.jceks
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 36500 -subj "/CN=Test CA"
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout leaf.key -out leaf.csr -subj "/CN=client"
openssl x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 36500 -out leaf.pem
cat leaf.pem ca.pem >chain.pem
openssl pkcs12 -export -in leaf.pem -inkey leaf.key -certfile ca.pem -name one -passout pass:changeit -out key.p12
openssl pkcs12 -export -in leaf.pem -inkey leaf.key -certfile ca.pem -name one -passout pass:changeit -out key-legacy.p12 -legacy
openssl pkcs12 -export -nokeys -in ca.pem -passout pass:changeit -out nokeys.p12
from="-srckeystore key.p12 -srcstoretype PKCS12 -srcstorepass changeit -deststorepass changeit -noprompt"
keytool -importkeystore $from -destkeystore key.jks -deststoretype JKS -srcalias one -destalias one -destkeypass other-password
keytool -importkeystore $from -destkeystore key-java.p12 -deststoretype PKCS12
for type in JKS PKCS12 JCEKS; do
	file=trust.$(echo $type | sed 's/PKCS12/p12/' | tr A-Z a-z)
	keytool -importcert -noprompt -alias ca -file ca.pem -keystore "$file" -storetype $type -storepass changeit
done
keytool -importcert -noprompt -alias leaf -file leaf.pem -keystore trust.jks -storetype JKS -storepass changeit
openssl pkcs8 -topk8 -in leaf.key -out key-aes256.pem -v2 aes256 -passout pass:changeit
openssl pkcs8 -topk8 -in leaf.key -out key-aes128.pem -v2 aes-128-cbc -v2prf hmacWithSHA512 -passout pass:changeit
openssl pkcs8 -topk8 -in leaf.key -out key-des3.pem -v2 des3 -v2prf hmacWithSHA1 -passout pass:changeit
openssl pkcs8 -topk8 -in leaf.key -out key-v1.pem -v1 PBE-SHA1-3DES -passout pass:changeit
openssl ec -in leaf.key -aes256 -passout pass:changeit -out key-old.pem
openssl ec -in leaf.key -out key-sec1.pem
rm -f leaf.csr ca.key ./*.srl
