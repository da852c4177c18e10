import { test } from 'vitest'
import { expectGenerated } from '../../../support/generated-page.ts'
import { HANDSHAKE_ROWS, type HandshakeRequest, type HandshakeRow } from './rows/handshakes.ts'
import { MORE_PROVIDER_ROWS } from './rows/signature-more-providers.ts'
import { PROVIDER_ROWS } from './rows/signature-providers.ts'

const INTRODUCTION = `<!-- Generated from the rows of the tests by \`npm run docs\`. -->

# Webhooks of providers

How providers [check an address](#how-providers-check-an-address) and [sign what they send](#how-providers-sign), as keys of a
definition. The tests send each request and verify a delivery of each.

## How providers check an address

The eight ways in which providers make sure that an address is yours, as \`handle_verification\`. An answer without a status is 200; an
expression without a result says that the request is a payload, whose signature is verified next.
`

test('the page of signatures and handshakes shows what is tested (npm run docs writes it anew)', () => {
  const handshakes = Object.entries(HANDSHAKE_ROWS).map(handshakeSection)
  const signatures = Object.entries({ ...PROVIDER_ROWS, ...MORE_PROVIDER_ROWS }).map(
    ([provider, { format, config }]) =>
      `### ${provider}\n\n${jsonBlock({ signature_verification: { format, config } })}\n`,
  )
  const page = [INTRODUCTION, ...handshakes, '## How providers sign\n', ...signatures].join('\n')
  expectGenerated('src/engine/reference/webhook-signatures.md', page)
})

function handshakeSection([name, { providers, explanation, webhook, requests }]: [string, HandshakeRow]): string {
  const table = ['| request | becomes |', '| --- | --- |', ...requests.map(requestLine)].join('\n')
  return `### ${name}\n\n${providers}. ${explanation}\n\n${jsonBlock({ webhook })}\n\n${table}\n`
}

function jsonBlock(value: unknown): string {
  return `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\``
}

function requestLine({ what, method = 'POST', query, body, result, isValid }: HandshakeRequest): string {
  const address = `${method}${query === undefined ? '' : ` ?${query}`}`
  const request = `${what}: \`${address}\`${body === undefined ? '' : `, body \`${body}\``}`
  if (isValid !== undefined) return `| ${request} | ${isValid ? 'an event' : 'rejected'} |`
  return `| ${request} | ${result === undefined ? 'a payload' : `\`${JSON.stringify(result)}\``} |`
}
