import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { afterEach, expect, it } from 'vitest'
import { type Logger, silentLogger } from '../../../../src/foundation/telemetry/logger.ts'
import { readTlsKeys, watchTlsKeys } from '../../../../src/server/config/tls-keys.ts'
import { createCertificateAuthority } from '../../../support/certificate-authority.ts'
import { scratchDirectory } from '../../../support/scratch-files.ts'
import { startHarness } from '../api/support/harness.ts'

const directory = mkdtempSync(join(scratchDirectory(), 'patchbay-tls-'))
const files = { tlsCert: join(directory, 'cert.pem'), tlsKey: join(directory, 'key.pem') }
const authority = createCertificateAuthority()
afterEach(() => rmSync(directory, { recursive: true }))

/** Replaces a file at once, as a mounted secret does. */
function replace(file: string, text: string): void {
  const target = join(directory, crypto.randomUUID())
  writeFileSync(target, text)
  symlinkSync(target, `${file}.new`)
  renameSync(`${file}.new`, file)
}

/** The serial number of the certificate that a new connection is shown. */
function shown(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, ca: authority.certificate, servername: 'a.example' }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    }).once('error', reject)
  })
}

it('a renewed certificate is used by the next connection, one that cannot be used is not', async () => {
  const first = authority.keysOf('a.example')
  replace(files.tlsCert, first.cert)
  replace(files.tlsKey, first.key)
  const tls = readTlsKeys(files)
  if (tls === undefined) throw new Error('there are no keys')
  await using harness = await startHarness({ tls })
  const before = await shown(harness.port)
  const changed = Promise.withResolvers<void>()
  const rejected = Promise.withResolvers<void>()
  const logger: Logger = { ...silentLogger, warn: () => rejected.resolve() }
  const onChange = (keys: typeof first) => {
    harness.server.replaceTlsKeys(keys)
    changed.resolve()
  }
  using _ = watchTlsKeys(files, { inUse: tls, onChange, logger, intervalMs: 10 })

  replace(files.tlsCert, 'no certificate')
  await rejected.promise
  expect(await shown(harness.port)).toBe(before)

  replace(files.tlsCert, authority.keysOf('a.example').cert)
  await changed.promise
  expect(await shown(harness.port)).not.toBe(before)
})
