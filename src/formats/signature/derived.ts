import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

/**
 * What senders sign instead of a body or address as it is. Each is one token of the parts.
 *
 * @module
 */

/** SHA-256 in hexadecimal. */
export function sha256Hex(body: Uint8Array): string {
  return hash('sha256', body)
}

/** CRC-32 as a decimal number (PayPal). */
export function crc32Decimal(body: Uint8Array): string {
  return String(crc32(body))
}

/**
 * The fields of a URL-encoded form, sorted by name, each name followed by its value, nothing between them (Twilio,
 * Mandrill). A name with several values appears once for each different one, sorted.
 */
export function sortedForm(body: Uint8Array): string {
  const fields = [...new URLSearchParams(Buffer.from(body).toString())]
  const pairs = new Map(fields.map(([name, value]) => [JSON.stringify([name, value]), { name, value }]))
  return [...pairs.values()]
    .sort((left, right) => compare(left.name, right.name) || compare(left.value, right.value))
    .map(({ name, value }) => name + value)
    .join('')
}

/** By code units, whatever the language of the machine. */
function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0
}

/** The characters that HubSpot decodes before it signs an address; all others stay encoded. */
const DECODED = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi

/** An address with the characters decoded that HubSpot's signature v3 decodes. */
export function decodeUrl(url: string): string {
  return url.replace(DECODED, decodeURIComponent)
}
