/**
 * The settings of a process: environment variables read once into a validated `Config`, the certificate and the public address they name.
 *
 * Never here: what is opened by them.
 */

export { assertKnownVariables, type Config, ConfigError, readConfig, SETTINGS } from './config.ts'
export { PublicAddress, publicAddressWarnings } from './public-address.ts'
export { readTlsKeys, watchTlsKeys } from './tls-keys.ts'
