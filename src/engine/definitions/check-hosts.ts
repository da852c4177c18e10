import type { Violation } from '../../foundation/base/index.ts'
import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import { listPlaceholderPaths } from '../expressions/template.ts'
import { type HostPlaceholder, listHostPlaceholders } from '../expressions/url-template.ts'
import {
  findDivertibleSecrets,
  hostValuesOf,
  isOfCaller,
  isOpenField,
  isRestrictive,
  listAddresses,
  openHostsOf,
} from './address-data-flow.ts'
import { type CredentialAt, listCredentialsAt } from './check-credentials.ts'
import { type FormFieldAt, listFormFields } from './check-forms.ts'
import { secretPaths } from './config-values.ts'
import { type ConfigFinding, toViolations } from './findings.ts'
import { labelKeyOf } from './form-fields.ts'

/** An address of a config, or its absence, with its path. */
interface TokenAddress {
  readonly address: Json | undefined
  readonly path: DotPath
}

/**
 * Hosts that the customer could choose freely, by a form or by the redirect: the customer would receive the secret of the
 * application's client, or a token of the account.
 *
 * @param path prefix of the reported fields: `config`, `override`
 */
export function findHostProblems(config: JsonObject, path: string): Violation[] {
  const credentials = listCredentialsAt(config.credentials ?? null)
  const findings = [
    ...credentials.flatMap((at) => findRedirectHosts(at, config)),
    ...credentials.flatMap((at) => findFieldHosts(at, config)),
    ...findFormHosts(config, credentials),
    ...findCallerHosts(config),
    ...findDivertedSecrets(config),
  ]
  return toViolations(findings, path)
}

/** Hosts that a parameter of the redirect decides; the code of the consent is sent there too. */
function findRedirectHosts(at: CredentialAt, config: JsonObject): ConfigFinding[] {
  const { context_from_redirect: mapping } = at.settings
  if (!isJsonObject(mapping)) return []
  const addresses = [...listTokenAddresses(at), { address: config.base_url, path: ['base_url'] }]
  return addresses.flatMap(({ address, path }) => {
    const key = namesInHost(address).find(({ name }) => isOpenMapping(mapping, name))?.name
    if (key === undefined) return []
    const description = `is decided by the redirect, which the customer can change: give context_from_redirect.${key} as {parameter, pattern}, with a pattern that only hosts of the third party match`
    return [{ at: path, description, rule: 'credentials.redirect_host' }]
  })
}

function isOpenMapping(mapping: JsonObject, name: string): boolean {
  const source = Object.hasOwn(mapping, name) ? mapping[name] : undefined
  return typeof source === 'string' || (isJsonObject(source) && !isRestrictive(source.pattern))
}

/** Fields of the form that decide where the secret of the application's client is sent. */
function findFieldHosts(at: CredentialAt, config: JsonObject): ConfigFinding[] {
  const { client, fields, auth } = at.settings
  if (!isJsonObject(client) || !Array.isArray(fields)) return []
  if (!isOfApplication(client.secret) && !isOfApplication(client.private_key)) return []
  const hasTokenHost = isJsonObject(auth) && auth.tokenHost !== undefined
  const addresses = listTokenAddresses(at).map(({ address }) => address)
  const open = new Set(
    [...addresses, ...(hasTokenHost ? [] : [config.base_url])]
      .flatMap(namesInHost)
      .flatMap(({ name, isBelowDomain }) => (isBelowDomain ? [] : [name])),
  )
  return fields.flatMap((field: Json, index) =>
    isJsonObject(field) && open.has(String(field.name)) && isOpenField(field)
      ? [
          {
            at: [...at.path, 'fields', index, 'pattern'],
            description: `must allow hosts of the third party alone: the secret of the application's client is sent to the host that ${field.name} names`,
            rule: 'credentials.field_host',
          },
        ]
      : [],
  )
}

/** Hosts that a caller chooses anew with each call, to which the customer's credentials would be sent. */
function findCallerHosts(config: JsonObject): ConfigFinding[] {
  return listAddresses(config).flatMap(({ address, path }) => {
    const value = hostValuesOf(address).find((each) => !each.isBelowDomain && isOfCaller(each, path))
    if (value === undefined) return []
    const description = `is decided by ${value.root}, which each caller gives: credentials would be sent to any host; name the domain, as in https://{{${value.root}.name}}.example.com`
    return [{ at: path, description, rule: 'url.host_of_caller' }]
  })
}

/** Secrets that are written in the definition and sent to a host that an account decides. */
function findDivertedSecrets(config: JsonObject): ConfigFinding[] {
  return findDivertibleSecrets(config, secretPaths(config), openHostsOf(config)).map(({ path, address }) => ({
    at: path,
    description: `would be sent to a host that accounts decide (${address.address.slice(0, 200)}): limit its values with a pattern, or name the domain`,
    rule: 'url.diverts_secret',
  }))
}

/** Whether a secret is the application's: written in the definition, or one of its variables. */
function isOfApplication(secret: Json | undefined): boolean {
  if (typeof secret !== 'string') return false
  const paths = listPlaceholderPaths(secret)
  return paths.length === 0 || paths.some(({ root }) => root === 'env' || root === 'environment_variables')
}

/** Fields of the form for connected accounts that decide where the account's token is sent. */
function findFormHosts(config: JsonObject, credentials: readonly CredentialAt[]): ConfigFinding[] {
  const fields = listFormFields(config)
  if (fields.length === 0) return []
  const names = listAddresses(config).flatMap(({ address }) => namesInHost(address))
  const inHost = new Set(names.map(({ name }) => name))
  const open = new Set(names.flatMap(({ name, isBelowDomain }) => (isBelowDomain ? [] : [name])))
  const collected = new Set(credentials.flatMap(({ settings }) => fieldNames(settings.fields)))
  return fields.flatMap((at) => findFormHost(at, inHost, open, collected))
}

function findFormHost(
  { name, field, path }: FormFieldAt,
  inHost: ReadonlySet<string>,
  open: ReadonlySet<string>,
  collected: ReadonlySet<string>,
): ConfigFinding[] {
  const finding = (key: string, description: string, rule: string) => [{ at: [...path, key], description, rule }]
  const labelKey = field.data_source === undefined ? undefined : labelKeyOf({ name, type: String(field.type) })
  if (labelKey !== undefined && inHost.has(labelKey))
    return finding(
      'name',
      `stores its label as ${labelKey}, which is part of a host: any text can be a label`,
      'form.host',
    )
  if (inHost.has(name) && collected.has(name))
    return finding(
      'name',
      'is the name of a credential field that is part of a host: the form would replace its value',
      'form.credential_name',
    )
  if (!open.has(name) || !isOpenField(field)) return []
  const description = `must allow hosts of the third party alone: the account's token is sent to the host that ${name} names`
  return finding('pattern', description, 'form.host')
}

function fieldNames(fields: Json | undefined): string[] {
  return Array.isArray(fields) ? fields.flatMap((field: Json) => (isJsonObject(field) ? [String(field.name)] : [])) : []
}

/** Addresses that receive the client's secret; without tokenHost the base_url of the config is one more. */
function listTokenAddresses({ settings: { auth, extend }, path }: CredentialAt): TokenAddress[] {
  const hosts = isJsonObject(auth) ? (['tokenHost', 'refreshHost', 'revokeHost'] as const) : []
  return [
    ...hosts.map((name) => ({ address: (auth as JsonObject)[name], path: [...path, 'auth', name] })),
    ...(isJsonObject(extend) ? [{ address: extend.host, path: [...path, 'extend', 'host'] }] : []),
  ]
}

interface NameInHost extends Pick<HostPlaceholder, 'isBelowDomain'> {
  readonly name: string
}

/** Names of the account's values before the path of an address. */
function namesInHost(address: Json | undefined): NameInHost[] {
  if (typeof address !== 'string') return []
  return listHostPlaceholders(address).flatMap(({ path: { root, steps }, isBelowDomain }) => {
    const [name] = steps
    const isOfAccount = root === undefined || root === 'context' || root === 'credentials'
    return isOfAccount && typeof name === 'string' ? [{ name, isBelowDomain }] : []
  })
}
