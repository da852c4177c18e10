import { join } from 'node:path'
import { systemClock } from '../foundation/base/index.ts'
import { createEgressPolicy, createHttpClient } from '../foundation/egress/index.ts'
import {
  CONTEXT_OBJECT_BYTES_MAX,
  createDirectoryStore,
  createS3Store,
  type ObjectStore,
  type S3Bucket,
} from '../platform/objects/index.ts'
import { type Config, ConfigError } from './config/config.ts'

/** Below the data directory, unless the settings name another. */
const DIRECTORY = 'objects'

/**
 * Opens the object store of the settings: a bucket where PATCHBAY_OBJECT_STORE_ENDPOINT is set, else a directory. The bucket is
 * reached by a client of its own, whose address policy also allows PATCHBAY_OBJECT_STORE_ALLOW.
 */
export function openObjectStore(config: Config): ObjectStore & AsyncDisposable {
  const bucket = bucketOf(config)
  if (bucket === undefined) {
    const directory = createDirectoryStore(config.objectStoreDirectory ?? join(config.dataDir, DIRECTORY))
    return { ...directory, [Symbol.asyncDispose]: async () => {} }
  }
  const allow = [config.egressAllow, config.objectStoreAllow].filter((ranges) => ranges !== '').join(',')
  const http = createHttpClient({ policy: createEgressPolicy({ allow, variable: 'PATCHBAY_OBJECT_STORE_ALLOW' }) })
  const deps = { http, clock: systemClock, random: Math.random }
  return {
    ...createS3Store(deps, bucket, CONTEXT_OBJECT_BYTES_MAX),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

/** @throws ConfigError when an endpoint is set and what it needs is not */
function bucketOf(config: Config): S3Bucket | undefined {
  const { objectStoreEndpoint: endpoint, objectStoreBucket: bucket } = config
  const { objectStoreAccessKeyId: accessKeyId, objectStoreSecretAccessKey: secretAccessKey } = config
  if (endpoint === undefined) return undefined
  if (bucket === undefined || accessKeyId === undefined || secretAccessKey === undefined)
    throw new ConfigError(
      'PATCHBAY_OBJECT_STORE_ENDPOINT needs PATCHBAY_OBJECT_STORE_BUCKET, PATCHBAY_OBJECT_STORE_ACCESS_KEY and PATCHBAY_OBJECT_STORE_SECRET_KEY',
    )
  return {
    endpoint,
    bucket,
    accessKeyId,
    secretAccessKey,
    region: config.objectStoreRegion,
    isPathStyle: config.objectStorePathStyle,
    prefix: config.objectStorePrefix,
  }
}
