<?php
// Verifies deliveries with the standard library alone. Reads cases as JSON lines, answers true or false for each.

const TOLERANCE_SECONDS = 5 * 60;

function verify(string $secret, array $headers, string $body): bool
{
    if (abs(time() - (int) $headers['webhook-timestamp']) > TOLERANCE_SECONDS) {
        return false;
    }
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $signed = "{$headers['webhook-id']}.{$headers['webhook-timestamp']}.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', $headers['webhook-signature']) as $one) {
        if (hash_equals($expected, $one)) {
            return true;
        }
    }
    return false;
}

while (($line = fgets(STDIN)) !== false) {
    $given = json_decode($line, true);
    echo json_encode(verify($given['secret'], $given['headers'], base64_decode($given['body']))), "\n";
}
