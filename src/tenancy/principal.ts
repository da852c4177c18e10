import { Failure } from '../base/index.ts'

/** Who calls: an accepted API token, and where it acts. */
export interface Principal {
  readonly kind: 'team' | 'environment'
  readonly tokenId: string
  readonly teamId: string
  /** The environment the token is bound to, or the one a team token named; absent when it named none. */
  readonly environmentId: string | undefined
  /** Whether the team is the one that administers the installation. */
  readonly isOperator: boolean
}

/** A team that administers what it owns; the operator's administers all teams. Every team principal is one. */
export type TeamActor = Pick<Principal, 'teamId' | 'isOperator'>

/** @throws Failure OPERATOR_TEAM_REQUIRED unless the team administers the installation */
export function assertOperator(actor: TeamActor): void {
  if (!actor.isOperator)
    throw new Failure('OPERATOR_TEAM_REQUIRED', "this operation needs a token of the operator's team")
}
