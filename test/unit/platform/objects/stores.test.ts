import { createHash, randomBytes } from 'node:crypto'
import { chmod, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { newId, systemClock } from '../../../../src/foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import {
  createDirectoryStore,
  createS3Store,
  type ObjectStore,
  type S3Bucket,
} from '../../../../src/platform/objects/index.ts'
import { S3_BUCKET, S3_KEY, startS3Server } from '../../../support/s3-server.ts'

const BYTES_MAX = 2 * 1024 * 1024
const { endpoint, directory: s3Directory } = await startS3Server()
const directory = await mkdtemp(join(tmpdir(), 'patchbay-objects-'))
const http = createHttpClient({ policy: createEgressPolicy({ allow: '127.0.0.0/8' }) })
const noWait = { ...systemClock, sleep: async () => {} }

afterAll(async () => {
  await http[Symbol.asyncDispose]()
  await rm(directory, { recursive: true, force: true })
})

function s3Store(changes: Partial<S3Bucket> = {}, client = http): ObjectStore {
  const bucket = { ...S3_KEY, endpoint, bucket: S3_BUCKET, isPathStyle: true, prefix: 'patch bay/(1)/', ...changes }
  return createS3Store({ http: client, clock: noWait, random: () => 0 }, bucket, BYTES_MAX)
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const nameOf = () => ({ environmentId: newId(), id: newId() })

describe.each([
  ['a directory', createDirectoryStore(join(directory, 'a'))],
  ['a bucket', s3Store()],
])('%s', (_, store) => {
  it.each([0, 1, 70_000, 1_048_576])('returns an object of %i bytes as it was stored', async (size) => {
    const [name, bytes] = [nameOf(), randomBytes(size)]
    await store.put(name, bytes)
    expect(Buffer.from((await store.get(name)) ?? []).equals(bytes)).toBe(true)
  })

  it('says that an object does not exist, before it was stored and after it was deleted', async () => {
    const name = nameOf()
    expect(await store.get(name)).toBeUndefined()
    await store.put(name, Buffer.from('x'))
    await store.delete(name)
    expect(await store.get(name)).toBeUndefined()
    await store.delete(name)
  })

  it('stores an object again, and finds it by its id in capitals', async () => {
    const name = nameOf()
    await store.put(name, Buffer.from('x'))
    await store.put(name, Buffer.from('x'))
    const capitals = { environmentId: name.environmentId.toUpperCase(), id: name.id.toUpperCase() }
    expect(Buffer.from((await store.get(capitals)) ?? []).toString()).toBe('x')
  })
})

describe('a directory', () => {
  it('is readable for its owner alone, and holds nothing but whole objects', async () => {
    const name = nameOf()
    await createDirectoryStore(join(directory, 'b')).put(name, Buffer.from('x'))
    const folder = join(directory, 'b', name.environmentId)
    expect(await readdir(folder)).toEqual([name.id])
    expect((await stat(folder)).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder, name.id))).mode & 0o777).toBe(0o600)
  })

  it('that cannot be used is an error that says so, not a missing object', async () => {
    const file = join(directory, 'file')
    await writeFile(file, '')
    await chmod(file, 0o600)
    const store = createDirectoryStore(file)
    for (const work of [() => store.put(nameOf(), Buffer.from('x')), () => store.get(nameOf())])
      await expect(work()).rejects.toMatchObject({
        reason: 'OBJECT_STORE_UNAVAILABLE',
        publicMessage: expect.stringContaining('ENOTDIR'),
      })
  })
})

describe('a bucket', () => {
  it('has objects under the prefix', async () => {
    const name = nameOf()
    await s3Store({ prefix: 'team/' }).put(name, Buffer.from('x'))
    const found = await readdir(join(s3Directory, S3_BUCKET, 'team', name.environmentId))
    expect(found.some((file) => file.startsWith(name.id))).toBe(true)
  })

  it.each<[string, Partial<S3Bucket>, RegExp]>([
    ['a wrong key', { secretAccessKey: 'wrong' }, /403 SignatureDoesNotMatch/],
    ['an unknown key', { accessKeyId: 'unknown' }, /403 InvalidAccessKeyId/],
    ['a bucket that does not exist', { bucket: 'other-bucket' }, /404 NoSuchBucket/],
    ['a port where nothing listens', { endpoint: 'http://127.0.0.1:9' }, /cannot be reached/],
  ])('with %s is an error that says why, not a missing object', async (_, changes, message) => {
    const store = s3Store(changes)
    for (const work of [
      () => store.put(nameOf(), Buffer.from('x')),
      () => store.get(nameOf()),
      () => store.delete(nameOf()),
    ]) {
      const error: unknown = await work().then(
        () => undefined,
        (thrown: unknown) => thrown,
      )
      expect(error).toMatchObject({ reason: 'OBJECT_STORE_UNAVAILABLE', publicMessage: expect.stringMatching(message) })
      expect(String(error)).not.toContain('wrong')
    }
  })

  it('signs the hash of the body: another one under the same signature is rejected', async () => {
    const sent: (string | undefined)[] = []
    const tampering: typeof http = {
      ...http,
      send(request) {
        sent.push(request.headers['x-amz-content-sha256'])
        return http.send({ ...request, headers: { ...request.headers, 'x-amz-content-sha256': sha256('other') } })
      },
    }
    const name = nameOf()
    await expect(s3Store({}, tampering).put(name, Buffer.from('value'))).rejects.toMatchObject({
      publicMessage: expect.stringContaining('SignatureDoesNotMatch'),
    })
    expect(sent).toEqual([sha256('value')])
    expect(await s3Store().get(name)).toBeUndefined()
  })

  it('on a private address needs the permission of its own client', async () => {
    await using guarded = createHttpClient({ policy: createEgressPolicy({ allow: '' }) })
    await expect(s3Store({}, guarded).get(nameOf())).rejects.toMatchObject({
      reason: 'OBJECT_STORE_UNAVAILABLE',
      publicMessage: expect.stringContaining('not a public address'),
    })
  })

  it('is asked three times while it is overloaded, and under its own host name when the style says so', async () => {
    const asked: string[] = []
    const statuses = [503, 429, 200]
    await using server = createServer((request, response) => {
      asked.push(`${request.method} ${request.headers.host?.replace(/:\d+$/, '')}${request.url}`)
      response.writeHead(statuses[asked.length - 1] ?? 503).end('bytes')
    }).listen(0, '127.0.0.1')
    const { port } = await new Promise<AddressInfo>((resolve) => {
      server.once('listening', () => resolve(server.address() as AddressInfo))
    })
    await using client = createHttpClient({
      policy: createEgressPolicy({ allow: '127.0.0.0/8' }),
      resolveAll: async () => [{ address: '127.0.0.1', family: 4 }],
    })
    const store = s3Store({ endpoint: `http://s3.test:${port}`, isPathStyle: false, prefix: '' }, client)
    const name = nameOf()
    expect(Buffer.from((await store.get(name)) ?? []).toString()).toBe('bytes')
    const request = `GET ${S3_BUCKET}.s3.test/${name.environmentId}/${name.id}`
    expect(asked).toEqual([request, request, request])
  })
})
