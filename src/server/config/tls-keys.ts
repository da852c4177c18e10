import { readFileSync } from 'node:fs'
import { describeError, type Logger } from '../../foundation/telemetry/index.ts'
import { findTlsProblem, type TlsKeys } from '../api/listener/protocol-detection.ts'
import { type Config, ConfigError } from './config.ts'

/** How often the files are read again. */
const REREAD_MS = 10_000

/** The certificate and key that are configured. @throws ConfigError when they cannot be read or used */
export function readTlsKeys({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>): TlsKeys | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const keys = { cert: readPem('PATCHBAY_TLS_CERT', tlsCert), key: readPem('PATCHBAY_TLS_KEY', tlsKey) }
  const problem = findTlsProblem(keys)
  if (problem === undefined) return keys
  throw new ConfigError(`PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY are no certificate and its key: ${problem}`)
}

/**
 * Hands out the certificate and key whenever their files hold others than those in use. Files that cannot be used, such as a new
 * certificate before its key is there, change nothing and are logged once.
 */
export function watchTlsKeys(
  config: Pick<Config, 'tlsCert' | 'tlsKey'>,
  {
    inUse,
    onChange,
    logger,
    intervalMs = REREAD_MS,
  }: {
    readonly inUse: TlsKeys | undefined
    readonly onChange: (keys: TlsKeys) => void
    readonly logger: Logger
    readonly intervalMs?: number
  },
): Disposable {
  let current = inUse
  let problem = ''
  const reread = () => {
    try {
      const keys = readTlsKeys(config)
      problem = ''
      if (keys === undefined || (keys.cert === current?.cert && keys.key === current.key)) return
      current = keys
      onChange(keys)
      logger.info({}, 'the certificate was read again')
    } catch (error) {
      const found = String(error)
      if (found !== problem)
        logger.warn(describeError(error), 'the certificate has changed and cannot be used: the one before stays')
      problem = found
    }
  }
  const timer = inUse === undefined ? undefined : setInterval(reread, intervalMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${setting} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
