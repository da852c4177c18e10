import { BlockList, isIP } from 'node:net'
import { z } from 'zod'

/** A whole number from `min` to `max`. */
export function integer(min: number, max: number) {
  const error = `takes a whole number from ${min} to ${max}`
  return z.string().regex(/^\d+$/, error).transform(Number).pipe(z.number().min(min, error).max(max, error))
}

/** A web address, without trailing slashes. */
export function url() {
  const isHttp = (text: string) => /^https?:$/.test(URL.parse(text)?.protocol ?? '')
  return z
    .string()
    .refine(isHttp, 'takes an http or https URL')
    .transform((text) => text.replace(/\/+$/, ''))
}

/** The address of a forward proxy; empty: none. */
export function proxyUrl() {
  const isHttp = (text: string) => text === '' || /^https?:$/.test(URL.parse(text)?.protocol ?? '')
  return (
    z
      .string()
      // As curl has it, `proxy:3128` is by http.
      .transform((text) => (text === '' || text.includes('://') ? text : `http://${text}`))
      .refine(isHttp, 'takes http://[user:password@]host:port')
      .prefault('')
  )
}

/** Comma-separated items, trimmed. */
export function list() {
  return z.string().transform((text) => text.split(',').map((item) => item.trim()))
}

/** Addresses and CIDR ranges. */
export function addressRanges() {
  return list()
    .optional()
    .transform((items = [], context) => {
      const ranges = new BlockList()
      if (!items.every((item) => addRange(ranges, item)))
        context.addIssue('takes a comma-separated list of CIDR ranges or addresses')
      return ranges
    })
}

/** Adds `address` or `address/prefix`; false when it is neither. */
function addRange(ranges: BlockList, item: string): boolean {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(item) ?? []
  const prefixMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  const prefix = Number(bits ?? prefixMax)
  if (prefixMax === -1 || prefix > prefixMax) return false
  ranges.addSubnet(address, prefix, prefixMax === 32 ? 'ipv4' : 'ipv6')
  return true
}

/** Origins of pages, or `*`. */
export function origins() {
  const isOrigin = (text: string) => /^https?:[^*]*$/.test(text) && URL.parse(text)?.origin === text
  const isOriginList = (items: readonly string[]) =>
    (items.length === 1 && items[0] === '*') || items.every((item) => item === '' || isOrigin(item))
  return list()
    .refine(isOriginList, 'takes `*`, or a comma-separated list of origins such as https://app.example.com (no path)')
    .transform((items) => items.filter((item) => item !== ''))
}
