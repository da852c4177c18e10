import { type DotPath, isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { PlaceholderPath } from '../expressions/placeholder.ts'
import { listHostPlaceholders } from '../expressions/url-template.ts'
import { findPatternProblem, matchesPattern } from '../formats/credential/field-pattern.ts'
import { type CredentialAt, listCredentialsAt } from './check-credentials.ts'
import { listFormFields } from './check-forms.ts'
import { resolvedSchema } from './config-schema.ts'
import { listFields } from './schema-walk.ts'
import { listReadsOfVariable } from './value-reads.ts'

/** An address of a config, with its path. */
export interface AddressAt {
  readonly address: string
  readonly path: DotPath
}

/** A value that decides a host. */
export interface HostValue {
  /** Absent for a bare name. */
  readonly root: PlaceholderPath['root']
  /** First step below the root; empty for the root as a whole. */
  readonly name: string
  /** The value is one label below a literal domain at most. */
  readonly isBelowDomain: boolean
}

/**
 * Every address of a config to which requests are sent, found through the schema: a setting that is added is among them. Origins
 * that next links may lead to are addresses too.
 */
export function listAddresses(config: JsonObject): AddressAt[] {
  return listFields(resolvedSchema, config).flatMap(({ role, value, path }) =>
    typeof value === 'string' && (role.kind === 'url' || path.at(-2) === 'allowed_origins')
      ? [{ address: value, path }]
      : [],
  )
}

/** The values that decide the host of an address. */
export function hostValuesOf(address: string): HostValue[] {
  return listHostPlaceholders(address).map(({ path: { root, steps }, isBelowDomain }) => ({
    root,
    name: String(steps[0] ?? ''),
    isBelowDomain,
  }))
}

/** Whether a value is one of the account: collected when it was connected, brought by a webhook, or a key of its context. */
function isOfAccount({ root, name }: HostValue): boolean {
  const isOfWebhook = root === 'connection' && name === 'webhook'
  return root === undefined || root === 'context' || root === 'credentials' || isOfWebhook
}

/** Whether a value is one of the installation's variables. */
function isOfEnvironment({ root }: HostValue): boolean {
  return root === 'env' || root === 'environment_variables'
}

/** Roots of what the caller of a method gives, each time anew. */
const CALLER_ROOTS: ReadonlySet<HostValue['root']> = new Set(['args', 'query', 'body', 'id', 'resources'])

/** Whether a value is given by the caller. In the requests for a token it is an answer to an earlier one. */
export function isOfCaller({ root }: HostValue, path: DotPath): boolean {
  return CALLER_ROOTS.has(root) && path[0] !== 'credentials'
}

/**
 * The secrets of a config whose way leads over a host that others decide.
 *
 * @param secretPaths of the secrets in question
 * @param isOpen whether others decide a value; it is not asked about labels below a literal domain
 */
export function findDivertibleSecrets(
  config: JsonObject,
  secretPaths: readonly DotPath[],
  isOpen: (value: HostValue, path: DotPath) => boolean,
): { readonly path: DotPath; readonly address: AddressAt }[] {
  if (secretPaths.length === 0) return []
  const addresses = listAddresses(config)
  const open = addresses.filter(({ address, path }) =>
    hostValuesOf(address).some((value) => !value.isBelowDomain && isOpen(value, path)),
  )
  if (open.length === 0) return []
  const credentials = listCredentialsAt(config.credentials ?? null)
  const reachOfPlace = (path: DotPath) =>
    reachOf(
      path,
      credentials.find((at) => startsWith(path, at.path)),
      addresses,
    )
  return secretPaths.flatMap((path) => {
    // A variable is sent where it is read.
    const places = path[0] === 'environment_variables' ? listReadsOfVariable(config, path) : [path]
    const reaches = places.map(reachOfPlace)
    const address = open.find((at) => reaches.some((isReached) => isReached(at)))
    return address === undefined ? [] : [{ path, address }]
  })
}

/** Requests of a credential that are sent with the account's values, not with those of the application's client. */
const REQUESTS_OF_ACCOUNT: readonly DotPath[number][] = ['verification', 'identity']

/**
 * Which addresses a secret reaches: one of a credential's settings the addresses of its token requests, one by which received
 * webhooks are verified none, and any other one, such as a header, every address.
 */
function reachOf(
  path: DotPath,
  credential: CredentialAt | undefined,
  addresses: readonly AddressAt[],
): (address: AddressAt) => boolean {
  if (path[0] === 'webhook' && path[1] !== 'subscription') return () => false
  const within = credential === undefined ? undefined : path[credential.path.length]
  if (credential === undefined || within === undefined || REQUESTS_OF_ACCOUNT.includes(within)) return () => true
  const isOfToken = (at: AddressAt) =>
    startsWith(at.path, credential.path) &&
    !REQUESTS_OF_ACCOUNT.some((name) => name === at.path[credential.path.length])
  const usesBase = !addresses.some(isOfToken) || hasRelativeRequest(credential.settings)
  return (at) => isOfToken(at) || (usesBase && at.path.length === 1 && at.path[0] === 'base_url')
}

/** Whether a request of the settings is sent below the `base_url` of the definition. */
function hasRelativeRequest(settings: JsonObject): boolean {
  return Object.entries(settings).some(
    ([name, value]) => !REQUESTS_OF_ACCOUNT.includes(name) && containsRelativeRequest(value),
  )
}

function containsRelativeRequest(value: Json): boolean {
  if (Array.isArray(value)) return value.some((item: Json) => containsRelativeRequest(item))
  if (!isJsonObject(value)) return false
  if (typeof value.path === 'string' && typeof value.method === 'string' && value.base_url === undefined) return true
  return Object.values(value).some(containsRelativeRequest)
}

function startsWith(path: DotPath, start: DotPath): boolean {
  return path.length >= start.length && start.every((step, index) => step === path[index])
}

/**
 * Names of the account's values that decide a host without a limit: not below a domain, and without a pattern or list of options
 * that holds everywhere where the definition takes such a value.
 */
export function findOpenHostNames(config: JsonObject): ReadonlySet<string> {
  return openNames(config, listDeclarations(config))
}

/**
 * Whether an account decides a host without a limit. Within a credential its own fields are what the customer fills in: another one
 * of the definition may take any host.
 */
export function openHostsOf(config: JsonObject): (value: HostValue, path: DotPath) => boolean {
  const credentials = listCredentialsAt(config.credentials ?? null)
  const everywhere = findOpenHostNames(config)
  return (value, path) => {
    if (!isOfAccount(value)) return false
    const at = credentials.find((each) => startsWith(path, each.path))
    return (at === undefined ? everywhere : openNames(config, listDeclarations(config, [at]))).has(value.name)
  }
}

function openNames(config: JsonObject, declared: readonly Declaration[]): ReadonlySet<string> {
  const names = listAddresses(config)
    .flatMap(({ address }) => hostValuesOf(address))
    .flatMap((value) => (isOfAccount(value) && !value.isBelowDomain ? [value.name] : []))
  return new Set(
    names.filter((name) => {
      const own = declared.filter((each) => each.name === name)
      return own.length === 0 || own.some(({ isRestricted }) => !isRestricted)
    }),
  )
}

interface Declaration {
  readonly name: string
  readonly isRestricted: boolean
  /** What it is limited to. */
  readonly limit: Json
}

/** Where a definition takes values of accounts, with their limits. @param credentials default: all of the definition */
function listDeclarations(
  config: JsonObject,
  credentials: readonly CredentialAt[] = listCredentialsAt(config.credentials ?? null),
): Declaration[] {
  const fields = credentials.flatMap(({ settings }) => (Array.isArray(settings.fields) ? settings.fields : []))
  const redirects = credentials.flatMap(({ settings: { context_from_redirect: mapping } }) =>
    isJsonObject(mapping) ? Object.entries(mapping) : [],
  )
  return [
    ...[...fields, ...listFormFields(config).map(({ field }) => field)].flatMap((field: Json) =>
      isJsonObject(field)
        ? [
            {
              name: String(field.name),
              isRestricted: !isOpenField(field),
              limit: field.pattern ?? field.options ?? null,
            },
          ]
        : [],
    ),
    ...redirects.map(([name, source]) => ({
      name,
      isRestricted: isJsonObject(source) && isRestrictive(source.pattern),
      limit: isJsonObject(source) ? (source.pattern ?? null) : null,
    })),
  ]
}

/** Whether a field takes any host: it has neither listed options nor a pattern that excludes hosts. */
export function isOpenField({ type, options, pattern }: JsonObject): boolean {
  return !(type === 'single_select' && Array.isArray(options)) && !isRestrictive(pattern)
}

const HOSTS = ['evil.example', 'www.evil.com', 'evil.com', 'evil.net', 'evil.org', 'evil.io', '203.0.113.7']

/** Hosts and addresses that belong to no third party: a pattern that one of them matches restricts nothing. */
const PROBES = HOSTS.flatMap((host) => [host, `https://${host}`, `https://${host}/`, `http://${host}`])

/** A pattern that is invalid has a finding of its own. */
export function isRestrictive(pattern: Json | undefined): boolean {
  if (typeof pattern !== 'string') return false
  return findPatternProblem(pattern) !== undefined || !PROBES.some((probe) => matchesPattern(pattern, probe))
}

/**
 * Where requests of a config are sent, as far as the config decides it: for each address its scheme and authority, with the
 * variables in it and the limits of the account's values in it.
 */
export function hostsOf(config: JsonObject): ReadonlySet<string> {
  const variables = isJsonObject(config.environment_variables) ? config.environment_variables : {}
  const declared = listDeclarations(config)
  const limitsOf = (name: string) => declared.filter((each) => each.name === name).map(({ limit }) => limit)
  const describe = (value: HostValue) => {
    if (isOfEnvironment(value)) return [`${value.name} = ${JSON.stringify(variables[value.name] ?? null)}`]
    return isOfAccount(value) && !value.isBelowDomain
      ? [`${value.name} in ${JSON.stringify([...new Set(limitsOf(value.name).map((limit) => JSON.stringify(limit)))])}`]
      : []
  }
  return new Set(
    listAddresses(config).map(({ address }) => {
      const [authority = address] = /^(?:[a-z]+:\/\/)?[^/]*/i.exec(address) ?? []
      return [authority, ...hostValuesOf(address).flatMap(describe)].join(' ')
    }),
  )
}
