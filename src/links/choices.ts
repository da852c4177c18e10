import type { JsonObject } from '../base/index.ts'
import type { AuthenticationMethod, Field } from '../formats/index.ts'
import type { LinkDependencies } from './dependencies.ts'
import type { LinkSession } from './session.ts'

/** An integration that the customer may choose. */
export interface LinkChoice {
  readonly environmentIntegrationId: string
  /** Name of the integration, such as `hubspot`. */
  readonly name: string
  /** For people; the name where the definition has none. */
  readonly label: string
  /** Category of the integration; empty where it has none. */
  readonly category: string
  /** Address at the third party, for the page to fetch and serve; absent where the definition has none. */
  readonly logoUrl: string | undefined
  /** In the order of the definition; at least one. */
  readonly methods: readonly LinkMethod[]
}

/** One way of connecting an account. */
export interface LinkMethod {
  readonly authenticationMethod: AuthenticationMethod
  /** Absent where the definition has none. */
  readonly label: string | undefined
  /** Whether the customer consents at the third party. */
  readonly hasConsent: boolean
}

/** The form of the chosen integration and method. */
export interface ConnectForm {
  readonly choice: LinkChoice
  readonly method: LinkMethod
  /** Fields to show: those that the application has not filled. */
  readonly fields: readonly Field[]
  /** Values to show in them, by name; never of passwords. */
  readonly values: JsonObject
  /** Address that must be registered at the third party; empty without a consent. */
  readonly callbackUri: string
}

/** The integrations that the customer may choose, by label; empty when none is installed and enabled. */
export async function listChoices(_deps: LinkDependencies, _session: LinkSession): Promise<readonly LinkChoice[]> {
  return await Promise.reject(new Error('not yet'))
}

/** The form of a session in which integration and method are chosen; `undefined` when they are not, or no longer offered. */
export async function createConnectForm(
  _deps: LinkDependencies,
  _session: LinkSession,
): Promise<ConnectForm | undefined> {
  return await Promise.reject(new Error('not yet'))
}
