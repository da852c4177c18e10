import { assertNever } from '../../base/index.ts'
import type { RunDestination } from '../../queue/index.ts'

/** The `oneof destination` of a request: at most one of the two. */
export type DestinationChoice =
  | { readonly case: 'daemonGroupKey'; readonly value: string }
  | { readonly case: 'webhookId'; readonly value: string }
  | { readonly case: undefined; readonly value?: undefined }

/** The destination asked for; undefined when the request names none. */
export function destinationFromProto(choice: DestinationChoice): RunDestination | undefined {
  switch (choice.case) {
    case 'daemonGroupKey':
      return { kind: 'daemon', groupKey: choice.value }
    case 'webhookId':
      return { kind: 'webhook', webhookId: choice.value }
    case undefined:
      return undefined
    default:
      return assertNever(choice)
  }
}

/** The stored destination as a `oneof`. */
export function destinationToProto(destination: RunDestination): DestinationChoice {
  switch (destination.kind) {
    case 'daemon':
      return { case: 'daemonGroupKey', value: destination.groupKey }
    case 'webhook':
      return { case: 'webhookId', value: destination.webhookId }
    default:
      return assertNever(destination)
  }
}
