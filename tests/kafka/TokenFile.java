package acme;
import java.nio.file.*;
import java.util.*;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.*;
import org.apache.kafka.common.security.oauthbearer.*;

public class TokenFile implements AuthenticateCallbackHandler {
    private String file;
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        file = (String) entries.get(0).getOptions().get("acmeTokenFile");
    }
    public void handle(Callback[] callbacks) throws java.io.IOException {
        for (Callback callback : callbacks)
            if (callback instanceof OAuthBearerTokenCallback wanted) {
                String text = Files.readString(Path.of(file));
                wanted.token(new OAuthBearerToken() {
                    public String value() { return text; }
                    public Set<String> scope() { return Set.of(); }
                    public long lifetimeMs() { return System.currentTimeMillis() + 3600000; }
                    public String principalName() { return "lockstep"; }
                    public Long startTimeMs() { return System.currentTimeMillis(); }
                });
            } else if (callback instanceof SaslExtensionsCallback more) {
                more.extensions(new SaslExtensions(Map.of("site", "north")));
            }
    }
    public void close() {}
}
