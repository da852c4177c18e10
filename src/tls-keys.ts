import { readFileSync } from 'node:fs'
import { findTlsProblem, type TlsKeys } from './api/index.ts'
import { type Config, ConfigError } from './config.ts'

/** The certificate and key that are configured. @throws ConfigError when they cannot be read or used */
export function readTlsKeys({ tlsCert, tlsKey }: Config): TlsKeys | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const keys = { cert: readPem('PATCHBAY_TLS_CERT', tlsCert), key: readPem('PATCHBAY_TLS_KEY', tlsKey) }
  const problem = findTlsProblem(keys)
  if (problem === undefined) return keys
  throw new ConfigError(`PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY are no certificate and its key: ${problem}`)
}

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${setting} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
