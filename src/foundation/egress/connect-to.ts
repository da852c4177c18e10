import { isIP } from 'node:net'
import { Failure } from '../base/errors.ts'
import { type AddressRange, isInRanges, parseRange } from './address.ts'

/** Where a connection is made instead: an IP address without brackets, and a port unless that of the URL stays. */
interface ConnectToAddress {
  readonly address: string
  readonly port: number | undefined
}

/** Like `--connect-to` of curl: the other end of a connection to a host and port; `undefined`: none, it is resolved. */
export type ConnectTo = (host: string, port: number) => ConnectToAddress | undefined

interface ConnectToEntry extends ConnectToAddress {
  /** A name in lower case, `*.example.com` for all names below it, or `*` for all names. */
  readonly host: string
  readonly hostPort: number | undefined
}

const VARIABLE = 'PATCHBAY_EGRESS_CONNECT_TO'
const HOST = /^(\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)(?::(\d{1,5}))?$/
const TARGET = /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/
const PORT_MAX = 65_535

/**
 * Parses `host[:port]=address[:port]`, separated by commas; the first entry that matches a connection is taken. `*` is every name,
 * and no literal address: that is where it says. TLS and headers keep the name of the URL.
 *
 * @param allow the ranges of PATCHBAY_EGRESS_ALLOW, which has to name each address: one setting alone diverts nothing
 * @throws Failure INVALID_FIELD naming the entry that is malformed, or whose address is not allowed
 */
export function parseConnectTo(text: string, allow: string): ConnectTo {
  const ranges = allow
    .split(',')
    .map((range) => parseRange(range.trim()))
    .filter((range) => range !== undefined)
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
    .map((entry) => parseEntry(entry, ranges))
  return (host, port) => {
    if (isIP(host) !== 0) return undefined
    return entries.find((each) => matchesHost(each.host, host) && (each.hostPort ?? port) === port)
  }
}

function parseEntry(entry: string, ranges: readonly AddressRange[]): ConnectToEntry {
  const [left = '', right = '', ...rest] = entry.split('=')
  const [, host, hostPort] = HOST.exec(left.toLowerCase()) ?? []
  const [, v6, v4, port] = TARGET.exec(right) ?? []
  const address = v6 ?? v4 ?? ''
  const isAddress = isIP(address) === (v6 === undefined ? 4 : 6) && parseRange(address) !== undefined
  if (host === undefined || !isAddress || rest.length > 0 || !isPort(hostPort) || !isPort(port))
    throw invalid(
      `takes host[:port]=address[:port] separated by commas, such as api.example.com=127.0.0.1:8443; "${entry}" is not that`,
    )
  if (!isInRanges(address, ranges))
    throw invalid(`"${entry}" needs PATCHBAY_EGRESS_ALLOW to contain the address ${address}`)
  return { host, hostPort: numberOf(hostPort), address, port: numberOf(port) }
}

function matchesHost(pattern: string, host: string): boolean {
  const name = host.toLowerCase()
  return pattern.startsWith('*') ? name.endsWith(pattern.slice(1)) : name === pattern
}

function isPort(text: string | undefined): boolean {
  return text === undefined || (Number(text) >= 1 && Number(text) <= PORT_MAX)
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}

function invalid(predicate: string): Failure {
  return new Failure('INVALID_FIELD', `${VARIABLE} ${predicate}`)
}
