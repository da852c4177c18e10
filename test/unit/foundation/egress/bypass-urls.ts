/**
 * URLs that try to talk an address guard past itself: internal targets, each in every spelling an address has, names
 * that mean internal hosts, and tricks with the URL's own syntax.
 *
 * @param port where the canary listens, for the URLs that could reach it
 */
export function bypassUrls(port: number): readonly string[] {
  const literals = TARGETS.flatMap((target) => ipv4Spellings(target).map((host) => `http://${host}:${port}/`))
  const names = INTERNAL_NAMES.map((host) => `http://${host}:${port}/`)
  const v6 = INTERNAL_V6.map((host) => `http://[${host}]:${port}/`)
  return [...new Set([...literals, ...names, ...v6, ...syntaxTricks(port)])]
}

type Octets = readonly [number, number, number, number]

const TARGETS: readonly Octets[] = [
  [127, 0, 0, 1],
  [127, 1, 2, 3],
  [0, 0, 0, 0],
  [10, 0, 0, 1],
  [172, 16, 5, 4],
  [192, 168, 1, 1],
  [169, 254, 169, 254],
  [169, 254, 170, 2],
  [100, 100, 100, 200],
  [192, 0, 0, 192],
  [168, 63, 129, 16],
  [255, 255, 255, 255],
]

const INTERNAL_NAMES = [
  'localhost',
  'LOCALHOST',
  'localhost.',
  'foo.localhost',
  'metadata',
  'metadata.goog',
  'metadata.google.internal',
  'metadata.google.internal.',
  'instance-data',
  'instance-data.ec2.internal',
  'rebind.example',
  '127.0.0.1.wildcard.example',
]

const INTERNAL_V6 = [
  '::',
  '::1',
  '0:0:0:0:0:0:0:1',
  '0000:0000:0000:0000:0000:0000:0000:0001',
  'fe80::1',
  'fc00::1',
  'fd00:ec2::254',
  'fec0::1',
  'ff02::1',
  '100::1',
  '2001:db8::1',
  '3fff::1',
  '5f00::1',
]

/** One IPv4 address in the spellings that parsers, resolvers and gateways understand. */
function ipv4Spellings(octets: Octets): readonly string[] {
  const [a, b, c, d] = octets
  const dotted = octets.join('.')
  const number = ((a << 24) | (b << 16) | (c << 8) | d) >>> 0
  const hex = (value: number) => `0x${value.toString(16)}`
  const octal = (value: number) => `0${value.toString(8)}`
  const high = ((a << 8) | b).toString(16)
  const low = ((c << 8) | d).toString(16)
  const flipped = `${(0xffff ^ ((a << 8) | b)).toString(16)}:${(0xffff ^ ((c << 8) | d)).toString(16)}`
  return [
    dotted,
    `${dotted}.`,
    String(number),
    hex(number),
    `0${number.toString(8)}`,
    octets.map(hex).join('.'),
    octets.map(octal).join('.'),
    octets.map((octet) => `0000${octet.toString(8)}`).join('.'),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    `${a}.${(b << 16) | (c << 8) | d}`,
    `${a}.${b}.${(c << 8) | d}`,
    `${hex(a)}.${hex((b << 16) | (c << 8) | d)}`,
    spelledWith(dotted, 0xff10, '．'),
    spelledWith(dotted, 0xff10, '。'),
    circled(dotted),
    [...dotted].map((char) => `%${char.charCodeAt(0).toString(16)}`).join(''),
    dotted.replaceAll('.', '%2e'),
    `[::ffff:${dotted}]`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${high}:${low}]`,
    `[::${dotted}]`,
    `[::${high}:${low}]`,
    `[64:ff9b::${dotted}]`,
    `[64:ff9b:1::${dotted}]`,
    `[2002:${high}:${low}::1]`,
    `[::ffff:0:${dotted}]`,
    `[2001:0:4136:e378:8000:63bf:${flipped}]`,
    `[2a00:1450::5efe:${dotted}]`,
    `[2a00:1450::200:5efe:${dotted}]`,
  ]
}

function spelledWith(dotted: string, zero: number, dot: string): string {
  return dotted.replace(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit))).replaceAll('.', dot)
}

function circled(dotted: string): string {
  return dotted.replace(/\d/g, (digit) => (digit === '0' ? '⓪' : String.fromCodePoint(0x2460 + Number(digit) - 1)))
}

function syntaxTricks(port: number): readonly string[] {
  const canary = `127.0.0.1:${port}`
  return [
    `http://user@${canary}/`,
    `http://user:pass@${canary}/`,
    `http://public.example@${canary}/`,
    `http://public.example:80@${canary}/`,
    `http://public.example%40@${canary}/`,
    `http:\\\\${canary}\\`,
    `http:/\\${canary}/`,
    `http:${canary}/`,
    `http:///${canary}/`,
    `http:////${canary}/`,
    `http://${canary}#@public.example/`,
    `http://${canary}?@public.example/`,
    `http://${canary}\\@public.example/`,
    `  http://${canary}/  `,
    `ht\ntp://${canary}/`,
    `http://127.0.0.1\t:${port}/`,
    `http://127.0.0\u00ad.1:${port}/`,
    `http://127。0。0。1:${port}/`,
    `HTTP://${canary}/`,
    `ftp://${canary}/`,
    `file:///etc/passwd`,
    `gopher://${canary}/_GET%20/`,
    `ws://${canary}/`,
    `unix:/var/run/docker.sock`,
    `data:text/plain,hello`,
    `javascript:alert(1)`,
    `//${canary}/`,
    canary,
    '',
  ]
}
