import { equal, notEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:tls'
import { createCertificateAuthority } from '../../../support/certificate-authority.ts'
import { freePort, type RunningProduct } from '../../../support/product.ts'
import { secureServer } from './configurations.ts'
import type { Installation } from './installation.ts'
import { send } from './send.ts'
import { startNginx } from './servers.ts'

const RENEWED_WITHIN_MS = 15_000

/** The certificate of the product is renewed while nginx passes requests on; then one comes that is of another key. */
export async function renewCertificate(installation: Installation): Promise<string> {
  const { authority, secure, secureFiles } = installation
  const port = await freePort()
  await using _ = await startNginx(secureServer(installation, port, ''))
  let requests = 0
  const request = async () => {
    equal((await send(`http://localhost:${port}/openapi.json`)).status, 200)
    requests++
  }
  const first = await shown(installation)

  const startMs = performance.now()
  replace(secureFiles.cert, authority.keysOf('localhost').cert)
  while ((await shown(installation)) === first) {
    await request()
    if (performance.now() - startMs > RENEWED_WITHIN_MS) throw new Error('the certificate was not renewed')
  }
  const ms = Math.round(performance.now() - startMs)
  await request()
  const renewed = await shown(installation)
  notEqual(renewed, first)

  const logged = untilPrinted(secure, 'cannot be used')
  replace(secureFiles.cert, createCertificateAuthority().keysOf('localhost').cert)
  await logged
  equal(await shown(installation), renewed)
  await request()
  return `presented after ${ms} ms, ${requests} requests served; one of another key logged and not used`
}

/** Replaces a file at once. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

/** The serial number of the certificate that a new connection is shown. */
async function shown({ authority, secure }: Installation): Promise<string> {
  const socket = connect({ port: secure.port, host: '127.0.0.1', servername: 'localhost', ca: authority.certificate })
  await once(socket, 'secureConnect')
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

/** Resolves once the product has printed a text. */
async function untilPrinted({ child, output }: RunningProduct, text: string): Promise<void> {
  const signal = AbortSignal.timeout(RENEWED_WITHIN_MS)
  while (!output().includes(text))
    await Promise.race([child.stdout, child.stderr].map((stream) => stream && once(stream, 'data', { signal })))
}
