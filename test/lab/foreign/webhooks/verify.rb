# Verifies deliveries with the standard library alone. Reads cases as JSON lines, answers true or false for each.

require "base64"
require "json"
require "openssl"

TOLERANCE_SECONDS = 5 * 60

def verify(secret, headers, body)
  return false if (Time.now.to_i - Integer(headers["webhook-timestamp"])).abs > TOLERANCE_SECONDS

  key = Base64.decode64(secret.delete_prefix("whsec_"))
  signed = "#{headers["webhook-id"]}.#{headers["webhook-timestamp"]}.".b + body
  expected = "v1," + Base64.strict_encode64(OpenSSL::HMAC.digest("sha256", key, signed))
  headers["webhook-signature"].split(" ").any? { |one| OpenSSL.secure_compare(expected, one) }
end

$stdin.each_line do |line|
  given = JSON.parse(line)
  puts JSON.generate(verify(given["secret"], given["headers"], Base64.decode64(given["body"])))
end
