/** What the third party's webhooks are addressed to: one account, or an installation with all its accounts. */
type WebhookSourceKind = 'integrated_account' | 'environment_integration'

/** The path that receives the webhooks of a third party, below the public address of this service. @param id of the source */
export function webhookPath(kind: WebhookSourceKind, id: string): string {
  return `${PATHS[kind]}/${id}`
}

const PATHS: Readonly<Record<WebhookSourceKind, string>> = {
  integrated_account: '/integrated-account-webhook',
  environment_integration: '/environment-integration-webhook',
}
