import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SIGNING_CASES, type SignedDelivery, verifyDelivery } from '../../../lab/signing-libraries/cases.ts'
import { forgeriesOf } from '../../../lab/signing-libraries/forgeries.ts'
import { someCases } from '../../../support/case-count.ts'
import { readData } from '../../../support/data-files.ts'

/** One delivery of `test/data/signing-libraries/deliveries.json`, which `npm run faults signatures` writes. */
interface GoldenDelivery extends Omit<SignedDelivery, 'body'> {
  /** Package that signed it, or accepted it. */
  readonly library: string
  readonly now: string
  /** The secret, or the public key. */
  readonly key: string
  readonly body: string
}

const golden = readData<Readonly<Record<string, GoldenDelivery>>>('signing-libraries/deliveries.json') ?? {}
const deliveries = Object.entries(golden)
const manifest: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../lab/signing-libraries/package.json'), 'utf8'),
)

test('every provider has a delivery, and every library a provider', () => {
  expect(deliveries.map(([name]) => name)).toEqual(Object.keys(SIGNING_CASES))
  const libraries = new Set(Object.values(SIGNING_CASES).map(({ library }) => library))
  expect([...libraries].sort()).toEqual(Object.keys(manifest.dependencies).sort())
})

test('libraries have exact versions', () => {
  expect(Object.values(manifest.dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
})

function readDelivery(name: string, golden: GoldenDelivery) {
  const delivery = { ...golden, body: Buffer.from(golden.body) }
  return { signing: SIGNING_CASES[name]!, delivery, now: new Date(golden.now) }
}

test.each(deliveries)('a delivery of %s is accepted', async (name, golden) => {
  const { signing, delivery, now } = readDelivery(name, golden)
  expect(await verifyDelivery(signing, delivery, golden.key, now)).toMatchObject({ kind: 'valid' })
})

test.each(someCases(deliveries, 8))('a delivery of %s is rejected after any change', async (name, golden) => {
  const { signing, delivery, now } = readDelivery(name, golden)
  const accepted: string[] = []
  for (const forgery of forgeriesOf(signing, delivery, golden.key, now, undefined))
    if ((await verifyDelivery(signing, forgery.delivery, forgery.key, forgery.now)).kind === 'valid')
      accepted.push(forgery.name)
  expect(accepted).toEqual([])
})
