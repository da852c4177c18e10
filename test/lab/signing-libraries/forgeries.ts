import type { SignedDelivery, SigningCase } from './cases.ts'

/** One way to change a genuine delivery, or what the receiver knows, so that it must be rejected. */
export interface Forgery {
  readonly name: string
  readonly delivery: SignedDelivery
  readonly key: string
  readonly now: Date
}

const HEX = '0123456789abcdef'
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const BODY_POSITIONS = 24

/**
 * All forgeries of a delivery that was signed at `now`.
 *
 * @param other another genuine delivery with the same key and another body
 */
export function* forgeriesOf(
  signing: SigningCase,
  delivery: SignedDelivery,
  key: string,
  now: Date,
  other: SignedDelivery | undefined,
): Generator<Forgery> {
  const base = { delivery, key, now }
  const config = JSON.stringify(signing.choice)
  for (const [name, changed] of forgedHeaders(delivery, config))
    yield { ...base, name, delivery: { ...delivery, headers: changed } }
  for (const [name, changed] of forgedBodies(signing, delivery.body))
    yield { ...base, name, delivery: { ...delivery, body: changed } }
  if (config.includes('$url'))
    for (const [name, url] of forgedUrls(delivery.url)) yield { ...base, name, delivery: { ...delivery, url } }
  if (config.includes('$method')) yield { ...base, name: 'method', delivery: { ...delivery, method: 'PUT' } }
  for (const [name, changed] of forgedKeys(signing, key)) yield { ...base, name, key: changed }
  if (signing.toleranceSeconds !== undefined)
    for (const seconds of [signing.toleranceSeconds + 1, -signing.toleranceSeconds - 2])
      yield { ...base, name: `sent ${seconds} s ago`, now: new Date(now.getTime() + seconds * 1000) }
  if (other !== undefined && signing.signedFields === undefined)
    yield { ...base, name: 'the signature of another body', delivery: { ...delivery, headers: other.headers } }
}

type Change<T> = readonly [name: string, changed: T]

function* forgedHeaders(
  { headers }: SignedDelivery,
  config: string,
): Generator<Change<Readonly<Record<string, string>>>> {
  const isStandard = config.includes('standard_webhooks')
  for (const [name, value] of Object.entries(headers)) {
    if (!isStandard && !config.includes(`$header.${name}`)) continue
    const put = (text: string) => ({ ...headers, [name]: text })
    const { [name]: _dropped, ...without } = headers
    yield [`${name} missing`, without]
    yield [`${name} empty`, put('')]
    yield [`${name} with more`, put(`${value}A`)]
    yield [`${name} with less`, put(value.slice(0, -1))]
    // A list of signatures stays valid with a second one.
    if (!(isStandard && name.endsWith('signature'))) yield [`${name} twice`, put(`${value}, ${value}`)]
    for (let at = 0; at < value.length; at++) {
      const flipped = flipDigit(value, at)
      if (flipped !== undefined) yield [`${name} changed at ${at}`, put(flipped)]
    }
    const swapped = value.includes('+') || value.includes('/') ? value.replaceAll('+', '-').replaceAll('/', '_') : value
    if (swapped !== value && !isTimed(value)) yield [`${name} in base64url`, put(swapped)]
  }
}

/** A date or a list of fields, whose characters mean other things. */
function isTimed(value: string): boolean {
  return /^\d{4}-|^[a-z0-9]+=|^v1,/i.test(value)
}

/** The next digit of its alphabet; `undefined` for other characters. */
function flipDigit(value: string, at: number): string | undefined {
  const char = value[at] ?? ''
  const isHex = /^[0-9a-f=,.:;tvhsa -]*$/.test(value)
  const alphabet = isHex ? HEX : BASE64
  const index = alphabet.indexOf(char)
  if (index < 0) return undefined
  return value.slice(0, at) + alphabet[index ^ 1] + value.slice(at + 1)
}

function* forgedBodies({ signedFields }: SigningCase, body: Uint8Array): Generator<Change<Uint8Array>> {
  const text = Buffer.from(body).toString()
  if (signedFields !== undefined) {
    for (const field of signedFields) {
      const changed = text.replace(
        field,
        field.replace(/.$/, (last) => (last === '9' ? '8' : '9')),
      )
      yield [`field ${field}`, Buffer.from(changed)]
    }
    return
  }
  const step = Math.max(1, Math.floor(body.length / BODY_POSITIONS))
  for (let at = 0; at < body.length; at += step)
    yield [`body changed at ${at}`, body.map((byte, index) => (index === at ? byte ^ 1 : byte))]
  yield ['body with more', Buffer.concat([body, Buffer.from('x')])]
  yield ['body with less', body.subarray(0, -1)]
  yield ['body empty', Buffer.alloc(0)]
  yield ['body with a byte order mark', Buffer.concat([Buffer.from('\ufeff'), body])]
  for (const [name, changed] of [
    ['NFC', text.normalize('NFC')],
    ['NFD', text.normalize('NFD')],
    ['\\n line breaks', text.replaceAll('\r\n', '\n')],
    ['trimmed', text.trim()],
  ] as const)
    if (!Buffer.from(changed).equals(Buffer.from(body))) yield [`body ${name}`, Buffer.from(changed)]
}

function* forgedUrls(url: string): Generator<Change<string>> {
  yield ['URL of another host', url.replace('hooks.', 'hook5.')]
  yield ['URL without TLS', url.replace('https:', 'http:')]
  yield ['URL of another account', url.replace('0195f1c2', '0195f1c3')]
  yield ['URL with another query', url.replace('tenant=7', 'tenant=8')]
  yield ['URL without its query', url.replace(/\?.*$/, '')]
}

function* forgedKeys({ key: kind = 'text' }: SigningCase, key: string): Generator<Change<string>> {
  yield ['no key', '']
  const middle = key.length >> 1
  const char = key[middle] ?? ''
  const next = kind === 'hex' || kind === 'ed25519' ? HEX[HEX.indexOf(char) ^ 1] : char === 'A' ? 'B' : 'A'
  yield ['key off by one', key.slice(0, middle) + next + key.slice(middle + 1)]
  if (kind === 'text') yield ['key with less', key.slice(0, -1)]
  if (kind === 'text') yield ['key with a line break', `${key}\n`]
}
