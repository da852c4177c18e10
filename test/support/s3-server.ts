import { mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** The part of `@20minutes/s3rver`, which has no types, that tests use. */
interface S3Rver {
  configureBuckets(): Promise<unknown>
  getRequestListener(): Promise<(...args: unknown[]) => void>
  run(): Promise<AddressInfo>
  close(): Promise<void>
  readonly httpServer: Server
}
type S3RverConstructor = new (options: Readonly<Record<string, unknown>>) => S3Rver

/** The key that the server knows. */
export const S3_KEY = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER', region: 'eu-central-1' } as const
export const S3_BUCKET = 'contexts'

/** An S3 server that verifies signatures, with one bucket, until the test file ends. */
export async function startS3Server(): Promise<{ readonly endpoint: string; readonly directory: string }> {
  const S3RverServer: S3RverConstructor = createRequire(import.meta.url)('@20minutes/s3rver')
  const directory = await mkdtemp(join(tmpdir(), 'patchbay-s3-'))
  const server = new S3RverServer({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    vhostBuckets: false,
    configureBuckets: [{ name: S3_BUCKET }],
  })
  const { port } = await server.run()
  afterAll(async () => {
    await server.close()
    await rm(directory, { recursive: true, force: true })
  })
  return { endpoint: `http://127.0.0.1:${port}`, directory }
}
