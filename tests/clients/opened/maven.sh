#!/usr/bin/env bash
# Maven through opened tunnels (lab.sh): one jar and its POM. It fetches them itself, as an extension that a
# project names: what would fetch a dependency are plugins, which Debian's Maven has not, and which lie in
# repositories elsewhere.
# shellcheck source=lab.sh
. "$(dirname "$0")/lab.sh"
needs mvn keytool python3 sha1sum

artifact=$site/org/example/sample/1.0
mkdir -p "$artifact"
head -c 300000 /dev/urandom >"$work/data"
python3 - "$artifact/sample-1.0.jar" "$work/data" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as jar:
    jar.write(sys.argv[2], 'data')
END
coordinates='<groupId>org.example</groupId><artifactId>sample</artifactId><version>1.0</version>'
echo "<project><modelVersion>4.0.0</modelVersion>$coordinates</project>" >"$artifact/sample-1.0.pom"
# Beside every extension Maven wants this; any jar will do.
utils=$site/org/codehaus/plexus/plexus-utils/1.1
mkdir -p "$utils"
cp "$artifact/sample-1.0.jar" "$utils/plexus-utils-1.1.jar"
for file in "$artifact"/* "$utils"/*; do
    sha1sum <"$file" | cut -d' ' -f1 >"$file.sha1"
done
given=("coordinates=$coordinates")

download() {
    local quick=(-XX:TieredStopAtLevel=1 -XX:+UseSerialGC) # for a program that is over in a second
    keytool "${quick[@]/#/-J}" -importcert -noprompt -alias reprise -file "$trusted" -keystore trusted \
        -storepass changeit
    cat >pom.xml <<END
<project><modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>asks</artifactId><version>1.0</version><packaging>pom</packaging>
  <pluginRepositories>
    <pluginRepository><id>central</id><url>https://$authority/</url></pluginRepository>
  </pluginRepositories>
  <build><extensions><extension>${coordinates:?}</extension></extensions></build>
</project>
END
    # Without this it asks with no-cache: the origin is asked each time whether what is stored still holds.
    cat >settings.xml <<END
<settings><servers><server><id>central</id><configuration><httpConfiguration><all>
  <useDefaultHeaders>false</useDefaultHeaders>
</all></httpConfiguration></configuration></server></servers></settings>
END
    # Java has its user's home from elsewhere than the environment.
    MAVEN_OPTS="-Duser.home=$HOME ${quick[*]}" mvn -B -q -s settings.xml \
        "-Dhttps.proxyHost=${proxy%:*}" "-Dhttps.proxyPort=${proxy##*:}" \
        -Djavax.net.ssl.trustStore=trusted -Djavax.net.ssl.trustStorePassword=changeit validate
}
compare() {
    cmp .m2/repository/org/example/sample/1.0/sample-1.0.jar "$site/org/example/sample/1.0/sample-1.0.jar"
}

start_lab
opened_three_times 6
refuses_outside 'name constraints check failed'
without_ca fails
stop_proxy
