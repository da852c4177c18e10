/** A certificate and signatures of its key, which is not kept, over notifications as Amazon SNS sends them. */
export const SNS_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIDGzCCAgOgAwIBAgIUaPv3cbp0jYCGIQvkBHuxSX6FTwMwDQYJKoZIhvcNAQEL
BQAwHDEaMBgGA1UEAwwRc25zLmFtYXpvbmF3cy5jb20wIBcNMjYxMTIyMjIzMDU4
WhgPMjEyNjEwMjkyMjMwNThaMBwxGjAYBgNVBAMMEXNucy5hbWF6b25hd3MuY29t
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAoZRqBFS4fpFNfFMubTmE
M/OUxaOY7ejGw8ok/KvqnCSPb8MTzEo0ua1ISjbyfa+EkHRTsFVzdfKoC2n4LFwJ
dE2C1Delwf5z2ktwNedc+Qb+0s+bDUIricVIHL44FIajA3CmiKmJ2sCBQemIv4s0
Hd39bKiiS37VWyAijhdjvdTa0DBRtrc7FjSq42chpK1VXCicxY9yLN0tQtaxfVgl
XiPDC8S3Xf5WQGecbsSh3S+/Ouuftbv+p3RLHc1fRKN9S9Lx10lBvceZXQOjiKdM
wBklR4+WEBZWqSy5NO7LeiRsKbzCJiv9xFxsSxNQYD8/PUFsLq/KLrqVlagRi9mv
oQIDAQABo1MwUTAdBgNVHQ4EFgQUXGREH7Ts0qUNgG1hJ7kWgnG1q3YwHwYDVR0j
BBgwFoAUXGREH7Ts0qUNgG1hJ7kWgnG1q3YwDwYDVR0TAQH/BAUwAwEB/zANBgkq
hkiG9w0BAQsFAAOCAQEAf6rYsvPXJfBTgZLbxkSBlvOhjMo3Ma/eYT4AqauOVE8N
ZEN50C98zB7qbDGbvn9YIlkMo3506bMHg6ScZGgL8ns//FfX6EIfK5LDjriWKDyM
p/JuZyGKr+ohHvPRYP4SkclmvGJ7OGwLikkmKgPkvlIUSR2YO9Qnr3nRb1cY6hjc
DMsdVeNxBbS+XiKpBxdmU7smpdjCmrxKcAnCMIi46gP7+mMDvomskNs3oVy7W3sN
nc74sONmv235Ggg0BVx9S174B8FQTzwtF0fdzYwvgbB/rrrEOVpq3bgay6oUu4fl
A/FTD5ktcJaLbtNOg+TyU3vwaE4eYRm7Zp4CpqevXw==
-----END CERTIFICATE-----
`

const TOPIC = 'arn:aws:sns:eu-central-1:123456789012:orders'
export const SNS_TIME = '2027-01-01T00:00:00.000Z'
export const SNS_CERTIFICATE_URL = 'https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem'

const common = { TopicArn: TOPIC, Timestamp: SNS_TIME, SigningCertURL: SNS_CERTIFICATE_URL }

/** With a subject, signature version 2. */
export const SNS_NOTIFICATION = {
  ...common,
  Type: 'Notification',
  MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
  Subject: 'My First Message',
  Message: '{"order":"1"}',
  SignatureVersion: '2',
  Signature:
    'WTGlhi9tfZMDIoOt0csNPJVcTh251PARYc6iNIP38HOl5kWNinv3KjtEIvJDh6vSU018dv76WdtId1sCEJkNbWJAuhCXdkmBpi39tUyGvzZzgNifXJspSLSwt+1sFkO0a1qhYI/tOy5pvDomnnE/r0bSJzRwukeXIMISBYsfk2Qtjwh4BY+CtPeiP1cyaXxosfeZvh+aAL6q4Gx07CY+7bpNcnCsF0Iq6uIXTsG94OW2G3kmrykxkd4T24JYR7FIw+W9YpD9J/0T9nhr8RnMVAkIu8w/36g2VLaNKa/sKU6bSEU6MDn2je9GN0IIFG6zv1laxKiVd24U/4klnNdrFg==',
} as const

/** Without a subject, signature version 1. */
export const SNS_PLAIN_NOTIFICATION = {
  ...common,
  Type: 'Notification',
  MessageId: '22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324',
  Message: '{"order":"1"}',
  SignatureVersion: '1',
  Signature:
    'L1XLcHvNYJ/PVFifAelfB4z5K9N5QXBNlJdps44fv2Mp8DAjnxRMnI/G611RXX8pzrqvx1I1HKC8LEtG6EuihwOujPlLdfLxvnxZNsUf5Og2/LkVfWlPMQZ6TE9DyOKtN1dr0ofzfaa8jF/iXI+7Cwq9RtYQanzwQJW+DAkwXcY6oT5iXN3ZTMPRGT8D1hs4ftiGTuPGNrJNyNzfPkE7q9W7kiC0c4SY/4awXbSIsFxGBsWb+2wDIj5QFC6JKc8Aqm5X47hkU7VVUkvgEzQlnnpMI9xqsQ1HY2tjph40Ppa61DWmDt4DXKCyi34r1imU7/9oyfIfJHfzCQlkJ/q/4A==',
} as const

export const SNS_CONFIRMATION = {
  ...common,
  Type: 'SubscriptionConfirmation',
  MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
  Token: '2336412f37',
  Message: 'You have chosen to subscribe.',
  SubscribeURL: `https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=2336412f37`,
  SignatureVersion: '2',
  Signature:
    'IDXgjSruL376gOjEYepkxDBRgFO2clfZWfXCgfFJdcWbgBakWisIHanyd6sXgzxG2potpmunhJ2VDjfE8tLrapydcJlEqpV709ngH3Q0iIfa6PIRwYeELRCgDZn1eCG3znT9Bdk1+MFdI1pjTpD6aRpz/MwuC4jSgUyJ7FM6W3fxPyMi8tbzZlz4wcucu3mko2RA/micRnVzOaPemHE+7jZ3U0gHBxT76eV4OY37ZwrZ+S6KXayrWc2d0kbWzTijkf1sn1o7Q7qh82d8yPE4zywBK9BLd+Kly2Ptn3b8pe9a0CgZFq5492KDOCiStN4hcwv5eDoBx5WDJBiMn0FRFQ==',
} as const
