package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// awsCredentials are what AWS_MSK_IAM signs a login with.
type awsCredentials struct {
	key, secret, session string
	until                time.Time // zero: they do not expire
}

// mostAWS bounds the files and answers with credentials.
const mostAWS = 1 << 20

// awsCredentials says where credentials of AWS come from: the usual places in their usual order, which are the environment, a role
// by a web identity (EKS), the file of credentials, a container's endpoint, and the machine's own. Nil after a fault.
func (r *propertyReader) awsCredentials(options map[string]string) func(context.Context) (awsCredentials, error) {
	for name := range options {
		if strings.HasPrefix(name, "awsRole") || strings.HasPrefix(name, "awsSts") {
			r.fail("sasl.jaas.config: %s is not supported: let the role come from where the process runs (AWS_ROLE_ARN with AWS_WEB_IDENTITY_TOKEN_FILE, the container's or the instance's role), or give the role's credentials in a profile", name)
			return nil
		}
	}
	c := r.aws
	if c == nil {
		c = new(awsChain)
	}
	profile := options["awsProfileName"]
	return func(ctx context.Context) (awsCredentials, error) { return c.get(ctx, profile) }
}

// awsChain looks for credentials and keeps those that expire until five minutes before that.
type awsChain struct {
	env      func(string) string // nil: os.Getenv
	metadata string              // the machine's own endpoint; "": http://169.254.169.254

	mu      sync.Mutex
	profile string
	last    awsCredentials
}

func (c *awsChain) getenv(name string) string {
	if c.env != nil {
		return c.env(name)
	}
	return os.Getenv(name)
}

func (c *awsChain) get(ctx context.Context, profile string) (awsCredentials, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.profile == profile && !c.last.until.IsZero() && time.Until(c.last.until) > 5*time.Minute {
		return c.last, nil
	}
	found, err := c.find(ctx, profile)
	if err != nil {
		if _, ok := errors.AsType[*tokenError](err); ok {
			return awsCredentials{}, err
		}
		return awsCredentials{}, &tokenError{text: "credentials of AWS: " + err.Error(), cause: err}
	}
	c.profile, c.last = profile, found
	return found, nil
}

func (c *awsChain) find(ctx context.Context, profile string) (awsCredentials, error) {
	if profile != "" {
		return c.fromFile(profile)
	}
	if key, secret := c.getenv("AWS_ACCESS_KEY_ID"), c.getenv("AWS_SECRET_ACCESS_KEY"); key != "" && secret != "" {
		return awsCredentials{key: key, secret: secret, session: c.getenv("AWS_SESSION_TOKEN")}, nil
	}
	if c.getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" && c.getenv("AWS_ROLE_ARN") != "" {
		return c.byWebIdentity(ctx)
	}
	if named := c.getenv("AWS_PROFILE"); named != "" {
		return c.fromFile(named)
	}
	found, err := c.fromFile("default")
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return found, err
	}
	if relative := c.getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		return c.ofContainer(ctx, "http://169.254.170.2"+relative)
	}
	if full := c.getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"); full != "" {
		return c.ofContainer(ctx, full)
	}
	if strings.EqualFold(c.getenv("AWS_EC2_METADATA_DISABLED"), "true") {
		return awsCredentials{}, errors.New("there are none in AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or from a role of the container")
	}
	return c.ofMachine(ctx)
}

// fromFile reads a profile of the file of credentials. One that is not there is os.ErrNotExist.
func (c *awsChain) fromFile(profile string) (awsCredentials, error) {
	path := c.getenv("AWS_SHARED_CREDENTIALS_FILE")
	if path == "" {
		home := c.getenv("HOME")
		if home == "" {
			return awsCredentials{}, os.ErrNotExist
		}
		path = filepath.Join(home, ".aws", "credentials")
	}
	text, err := readMost(path)
	if err != nil {
		return awsCredentials{}, err
	}
	var found awsCredentials
	section, seen := "", false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = strings.TrimSpace(strings.TrimPrefix(strings.Trim(line, "[]"), "profile "))
			seen = seen || section == profile
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || section != profile || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "aws_access_key_id":
			found.key = value
		case "aws_secret_access_key":
			found.secret = value
		case "aws_session_token":
			found.session = value
		}
	}
	switch {
	case !seen:
		return awsCredentials{}, fmt.Errorf("%s has no profile %s: %w", path, profile, os.ErrNotExist)
	case found.key == "" || found.secret == "":
		return awsCredentials{}, fmt.Errorf("the profile %s in %s has no aws_access_key_id and aws_secret_access_key; roles and single sign-on in profiles are not supported", profile, path)
	}
	return found, nil
}

func readMost(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostAWS+1))
	if err == nil && len(text) > mostAWS {
		err = fmt.Errorf("%s has more than %d bytes", path, mostAWS)
	}
	return text, err
}

// awsRegion is what a region may look like, since it becomes a part of a name.
var awsRegion = regexp.MustCompile(`^[a-z0-9-]+$`)

// byWebIdentity takes on a role with the token that Kubernetes puts into a file.
func (c *awsChain) byWebIdentity(ctx context.Context) (awsCredentials, error) {
	token, err := readMost(c.getenv("AWS_WEB_IDENTITY_TOKEN_FILE"))
	if err != nil {
		return awsCredentials{}, err
	}
	session := c.getenv("AWS_ROLE_SESSION_NAME")
	if session == "" {
		session = softwareName
	}
	address := c.getenv("AWS_ENDPOINT_URL_STS")
	if address == "" {
		address = "https://sts.amazonaws.com"
		region := c.getenv("AWS_REGION")
		if region == "" {
			region = c.getenv("AWS_DEFAULT_REGION")
		}
		if awsRegion.MatchString(region) {
			address = "https://sts." + region + ".amazonaws.com"
			if strings.HasPrefix(region, "cn-") {
				address += ".cn"
			}
		}
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {c.getenv("AWS_ROLE_ARN")},
		"RoleSessionName": {session}, "WebIdentityToken": {string(bytes.TrimSpace(token))},
	}
	body, err := ask(ctx, http.MethodPost, address, strings.NewReader(form.Encode()), map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, true)
	if err != nil {
		return awsCredentials{}, err
	}
	var answer struct {
		Key     string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
		Secret  string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
		Session string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
		Until   time.Time `xml:"AssumeRoleWithWebIdentityResult>Credentials>Expiration"`
	}
	if xml.Unmarshal(body, &answer) != nil || answer.Key == "" || answer.Secret == "" {
		return awsCredentials{}, fmt.Errorf("%s answers without credentials", address)
	}
	return awsCredentials{answer.Key, answer.Secret, answer.Session, answer.Until}, nil
}

// ofContainer asks the endpoint of a container of ECS or EKS.
func (c *awsChain) ofContainer(ctx context.Context, address string) (awsCredentials, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return awsCredentials{}, errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL")
	}
	if u.Scheme != "https" && !containerHost(u.Hostname()) {
		return awsCredentials{}, fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI: %s is neither https nor an address of this container", u.Host)
	}
	headers := map[string]string{}
	token := c.getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if path := c.getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path != "" {
		text, err := readMost(path)
		if err != nil {
			return awsCredentials{}, err
		}
		token = string(bytes.TrimSpace(text))
	}
	if token != "" {
		headers["Authorization"] = token
	}
	body, err := ask(ctx, http.MethodGet, address, nil, headers, false)
	if err != nil {
		return awsCredentials{}, err
	}
	return parseAWS(body, u.Host)
}

// containerHost tells the addresses of AWS's own agents and of the machine itself.
func containerHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && (ip.IsLoopback() || host == "169.254.170.2" || host == "169.254.170.23" || host == "fd00:ec2::23")
}

// ofMachine asks the metadata of an EC2 instance, in the way that needs a token.
func (c *awsChain) ofMachine(ctx context.Context) (awsCredentials, error) {
	base := c.metadata
	if base == "" {
		base = "http://169.254.169.254"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	token, err := ask(ctx, http.MethodPut, base+"/latest/api/token", nil, map[string]string{"X-aws-ec2-metadata-token-ttl-seconds": "300"}, false)
	if err != nil {
		return awsCredentials{}, fmt.Errorf("there are none in AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, ~/.aws/credentials, or from a role of the container, and the instance gives none: %w", err)
	}
	headers := map[string]string{"X-aws-ec2-metadata-token": string(token)}
	const path = "/latest/meta-data/iam/security-credentials/"
	role, err := ask(ctx, http.MethodGet, base+path, nil, headers, false)
	if err != nil {
		return awsCredentials{}, err
	}
	name, _, _ := strings.Cut(string(role), "\n")
	body, err := ask(ctx, http.MethodGet, base+path+url.PathEscape(strings.TrimSpace(name)), nil, headers, false)
	if err != nil {
		return awsCredentials{}, err
	}
	return parseAWS(body, "the instance")
}

// ask sends a request and returns the body of an answer with status 200. Neither is in an error.
func ask(ctx context.Context, method, address string, body io.Reader, headers map[string]string, proxy bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, errors.New("an address of the credentials is no URL")
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if proxy {
		transport.Proxy = http.ProxyFromEnvironment
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &tokenError{text: fmt.Sprintf("credentials of AWS: %s cannot be reached: %v", req.URL.Host, errors.Unwrap(err)), cause: err, transient: !aboutTLS(err)}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAWS))
	switch {
	case err != nil:
		return nil, &tokenError{text: fmt.Sprintf("credentials of AWS: %s: %v", req.URL.Host, err), cause: err, transient: true}
	case resp.StatusCode != http.StatusOK:
		return nil, &tokenError{text: fmt.Sprintf("credentials of AWS: %s answers with HTTP status %d", req.URL.Host, resp.StatusCode), transient: resp.StatusCode >= 500}
	}
	return text, nil
}

func parseAWS(body []byte, from string) (awsCredentials, error) {
	var answer struct {
		Key     string    `json:"AccessKeyId"`
		Secret  string    `json:"SecretAccessKey"`
		Session string    `json:"Token"`
		Until   time.Time `json:"Expiration"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Key == "" || answer.Secret == "" {
		return awsCredentials{}, fmt.Errorf("%s answers without credentials", from)
	}
	return awsCredentials{answer.Key, answer.Secret, answer.Session, answer.Until}, nil
}
