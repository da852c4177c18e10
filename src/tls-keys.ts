import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { findTlsProblem, type TlsKeys } from './api/index.ts'
import { type Config, ConfigError } from './config.ts'
import { describeError, type Logger } from './telemetry/index.ts'

/** How often the files are looked at: by `stat`, which sees a replaced link of a mounted secret too. */
const WATCH_MS = 10_000

/** The certificate and key that are configured. @throws ConfigError when they cannot be read or used */
export function readTlsKeys({ tlsCert, tlsKey }: Pick<Config, 'tlsCert' | 'tlsKey'>): TlsKeys | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const keys = { cert: readPem('PATCHBAY_TLS_CERT', tlsCert), key: readPem('PATCHBAY_TLS_KEY', tlsKey) }
  const problem = findTlsProblem(keys)
  if (problem === undefined) return keys
  throw new ConfigError(`PATCHBAY_TLS_CERT and PATCHBAY_TLS_KEY are no certificate and its key: ${problem}`)
}

/**
 * Hands out the certificate and key whenever their files change. Files that cannot be used, such as a new certificate before its key is
 * there, change nothing and are logged.
 */
export function watchTlsKeys(
  config: Pick<Config, 'tlsCert' | 'tlsKey'>,
  {
    onChange,
    logger,
    intervalMs = WATCH_MS,
  }: { readonly onChange: (keys: TlsKeys) => void; readonly logger: Logger; readonly intervalMs?: number },
): Disposable {
  const files = [config.tlsCert, config.tlsKey].filter((file) => file !== undefined)
  const reread = () => {
    try {
      const keys = readTlsKeys(config)
      if (keys === undefined) return
      onChange(keys)
      logger.info({}, 'the certificate was read again')
    } catch (error) {
      logger.warn(describeError(error), 'the certificate has changed and cannot be used: the one before stays')
    }
  }
  for (const file of files) watchFile(file, { interval: intervalMs, persistent: false }, reread)
  return {
    [Symbol.dispose]() {
      for (const file of files) unwatchFile(file, reread)
    },
  }
}

function readPem(setting: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${setting} cannot be read: ${cause instanceof Error ? cause.message : cause}`, { cause })
  }
}
