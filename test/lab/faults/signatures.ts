/**
 * Deliveries of the providers' own libraries, and forgeries of them: every genuine one is accepted, no forged one is.
 *
 * The libraries are a package of their own, `test/lab/signing-libraries`, installed by the first run. `WRITE_GOLDEN=1` writes
 * one delivery of each into `test/data/signing-libraries`, which `npm test` verifies without the libraries.
 */

import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { writeData } from '../../support/data-files.ts'
import { reportAtLeast, reportAtMost, reportBaseline } from '../bench/support/report.ts'
import {
  BODIES,
  SIGNED_URL,
  SIGNING_CASES,
  type SignedDelivery,
  type SigningCase,
  verifyDelivery,
} from '../signing-libraries/cases.ts'
import { forgeriesOf } from '../signing-libraries/forgeries.ts'

const PROVIDERS_MIN = 15
const KEYS_PER_PROVIDER = 3
const FOLDER = join(import.meta.dirname, '../signing-libraries')
const NOT_UTF8 = Uint8Array.of(0x7b, 0xff, 0x00, 0x80, 0x0d, 0x0a, 0x7d)

/** What an adapter gets: a delivery and the key of its sender. */
interface AdapterInput {
  readonly body: Uint8Array
  readonly url: string
  readonly method: string
  readonly now: Date
  readonly secret: string
  readonly publicKey: string
  readonly privateKey: KeyObject | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** An entry of `libraries.mjs`. */
interface Adapter {
  signBody?(input: AdapterInput): string
  sign(input: AdapterInput): Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>
  /** What the library thinks; absent: the library itself signs. */
  accepts?(input: AdapterInput): Promise<boolean>
}

/** The key of a sender, and what the receiver knows of it. */
interface SenderKey {
  readonly secret: string
  readonly publicKey: string
  readonly privateKey: KeyObject | undefined
  readonly known: string
}

const { LIBRARIES } = await loadLibraries()
const golden: Record<string, unknown> = {}
const totals = { genuine: 0, rejected: 0, disputed: 0, forgeries: 0, accepted: 0, libraryAccepted: 0 }
const cases = Object.entries(SIGNING_CASES)
for (const [name, signing] of cases) await tryProvider(name, signing)

reportAtLeast('signatures-providers', new Set(cases.map(([, { library }]) => library)).size, 'libraries', PROVIDERS_MIN)
reportAtLeast('signatures-genuine', totals.genuine, 'deliveries', 1)
reportAtMost('signatures-genuine-rejected', totals.rejected, 'deliveries', 0)
reportAtMost('signatures-rejected-by-library', totals.disputed, 'deliveries', 0)
reportAtLeast('signatures-forgeries', totals.forgeries, 'deliveries', 1)
reportAtMost('signatures-forged-accepted', totals.accepted, 'deliveries', 0)
reportBaseline('signatures-forged-accepted-by-libraries', totals.libraryAccepted, 'deliveries')
if (process.env.WRITE_GOLDEN === '1') writeData('signing-libraries/deliveries.json', golden)

async function tryProvider(name: string, signing: SigningCase): Promise<void> {
  const adapter = LIBRARIES[name]
  if (adapter === undefined) throw new Error(`libraries.mjs has no ${name}`)
  for (let round = 0; round < KEYS_PER_PROVIDER; round++) {
    const key = createKey(signing)
    const now = new Date(Math.floor(Date.now() / 1000) * 1000)
    const bodies: (string | Uint8Array)[] = [
      ...(signing.bodies?.(now) ?? BODIES),
      ...(signing.takesBytes ? [NOT_UTF8] : []),
    ]
    const inputs = bodies.map((body) => ({
      ...key,
      body: Buffer.from(body),
      url: SIGNED_URL,
      method: 'POST',
      now,
      headers: {},
    }))
    const deliveries = await Promise.all(inputs.map((input) => deliverySignedBy(adapter, input)))
    // First: a library may accept deliveries for a few seconds only.
    for (const delivery of deliveries) await judgeGenuine(name, signing, adapter, key, delivery, now)
    for (const [index, delivery] of deliveries.entries())
      await judgeForgeries(name, signing, adapter, key, delivery, now, deliveries[(index + 1) % deliveries.length])
    const shown = deliveries[Math.min(1, deliveries.length - 1)]
    if (round === 0 && shown !== undefined)
      golden[name] = {
        ...shown,
        library: signing.library,
        now,
        key: key.known,
        body: Buffer.from(shown.body).toString(),
      }
  }
}

async function deliverySignedBy(adapter: Adapter, input: AdapterInput): Promise<SignedDelivery> {
  const body = adapter.signBody === undefined ? input.body : Buffer.from(adapter.signBody(input))
  const headers = await adapter.sign({ ...input, body })
  return { method: input.method, url: input.url, headers, body }
}

async function judgeGenuine(
  name: string,
  signing: SigningCase,
  adapter: Adapter,
  key: SenderKey,
  delivery: SignedDelivery,
  now: Date,
): Promise<void> {
  const offsets =
    signing.toleranceSeconds === undefined ? [0] : [0, signing.toleranceSeconds, -signing.toleranceSeconds]
  for (const offset of offsets) {
    totals.genuine++
    const result = await verifyDelivery(signing, delivery, key.known, new Date(now.getTime() + offset * 1000))
    if (result.kind === 'valid') continue
    totals.rejected++
    process.stderr.write(`${name}: rejected, ${result.reason}\n`)
  }
  if ((await adapter.accepts?.({ ...delivery, ...key, now })) === false) {
    totals.disputed++
    process.stderr.write(`${name}: the library rejects what is signed here\n`)
  }
}

async function judgeForgeries(
  name: string,
  signing: SigningCase,
  adapter: Adapter,
  key: SenderKey,
  delivery: SignedDelivery,
  now: Date,
  next: SignedDelivery | undefined,
): Promise<void> {
  const other = next === delivery ? undefined : next
  for (const forgery of forgeriesOf(signing, delivery, key.known, now, other)) {
    totals.forgeries++
    const result = await verifyDelivery(signing, forgery.delivery, forgery.key, forgery.now)
    if (result.kind === 'valid') {
      totals.accepted++
      process.stderr.write(`${name}: accepted with ${forgery.name}\n`)
    }
    // The clock and the keys of the library are its own.
    const isOfDelivery = forgery.now === now && forgery.key === key.known
    if (isOfDelivery && (await adapter.accepts?.({ ...forgery.delivery, ...key, now }))) totals.libraryAccepted++
  }
}

function createKey({ key: kind = 'text' }: SigningCase): SenderKey {
  const none = { publicKey: '', privateKey: undefined }
  switch (kind) {
    case 'text':
      return secretKey(randomBytes(24).toString('base64url'), none)
    case 'hex':
      return secretKey(randomBytes(32).toString('hex'), none)
    case 'whsec':
      return secretKey(`whsec_${randomBytes(24).toString('base64')}`, none)
    case 'ed25519': {
      const pair = generateKeyPairSync('ed25519')
      const known = Buffer.from(pair.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')
      return { secret: '', publicKey: known, privateKey: pair.privateKey, known }
    }
    case 'p256': {
      const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const known = pair.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
      return { secret: '', publicKey: known, privateKey: pair.privateKey, known }
    }
  }
}

function secretKey(secret: string, none: { publicKey: string; privateKey: undefined }): SenderKey {
  return { ...none, secret, known: secret }
}

/** Installs the libraries unless they are there, with this Node: another one would get older releases. */
async function loadLibraries(): Promise<{ LIBRARIES: Readonly<Record<string, Adapter>> }> {
  if (!existsSync(join(FOLDER, 'node_modules'))) {
    const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: FOLDER,
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    if (status !== 0) throw new Error('the libraries of test/lab/signing-libraries could not be installed')
  }
  return import(join(FOLDER, 'libraries.mjs'))
}
