import { execFileSync } from 'node:child_process'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import type { LoggedRequestDetails } from '../../../../src/cli/client/calls.ts'
import { curlText } from '../../../../src/cli/commands/request-text.ts'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import { callDefinition, connectAccount, LOCAL_UPSTREAM } from '../../../product/calls.ts'
import { startTestApp } from '../../../support/app.ts'
import { CommandProcess } from '../../../support/command.ts'
import { keepPrinted } from '../../../support/printed-output.ts'
import { firstTenant } from '../../../support/seeded-tenant.ts'
import { startUpstream } from '../../../support/upstream.ts'

const upstream = await startUpstream()
const app = await startTestApp(LOCAL_UPSTREAM)
const tenant = firstTenant(app)
const { accountId } = await connectAccount(app, tenant, callDefinition(upstream.url))
const environment = { PATCHBAY_TOKEN: tenant.environmentToken, PATCHBAY_PUBLIC_URL: app.url }
const printed = keepPrinted()
const calls = (...args: string[]) => runCommand(['calls', ...args], environment)

afterAll(() => upstream[Symbol.asyncDispose]())
afterEach(() => upstream.verify())

/** Calls the third party. @returns the id of the log entry */
async function call(id: string, status = 200): Promise<string> {
  upstream.script({ request: `GET /contacts/${id}`, answer: { status, json: {} } })
  const headers = { authorization: `Bearer ${tenant.environmentToken}` }
  const answer = await fetch(`${app.url}/proxy/contacts/${id}?integrated_account_id=${accountId}`, { headers })
  return answer.headers.get('patchbay-log-id') ?? ''
}

describe('a request as a command of curl', () => {
  const request = (part: Partial<LoggedRequestDetails>) =>
    ({ httpMethod: 'POST', url: 'https://api.example.com/contacts', ...part }) as LoggedRequestDetails
  const header = (name: string, value: string) => ({ name, value })

  it('is one command of a shell, whatever a third party or a customer has put into it', () => {
    const hostile = 'it\'s $(id) `id` \\ "x" \n; id'
    const content = {
      requestHeaders: [header('x-note', hostile), header('Content-Length', '3'), header('authorization', '***')],
      requestBody: hostile,
    }
    const text = curlText(request({ url: `https://api.example.com/?q=${hostile}`, content: content as never }))
    const printer = 'curl() { printf "%s\\0" "$@"; }'
    const words = execFileSync('/bin/sh', ['-c', `${printer}; ${text}`], { encoding: 'utf8' })
      .split('\0')
      .slice(0, -1)
    expect(words).toEqual([
      '-X',
      'POST',
      `https://api.example.com/?q=${hostile}`,
      '-H',
      `x-note: ${hostile}`,
      '-H',
      'authorization: ***',
      '--data-raw',
      hostile,
    ])
  })

  it('has no body and no headers of a request whose content was not kept', () => {
    expect(curlText(request({ httpMethod: 'GET' }))).toBe("curl -X 'GET' 'https://api.example.com/contacts'")
  })
})

describe('patchbay calls', () => {
  it('prints the newest requests, oldest first, and only those of the class that is asked for', async () => {
    const [first, failed, last] = [await call('1'), await call('2', 404), await call('3')]
    expect(await calls('--account', accountId, '--limit', '2')).toBe(0)
    const lines = printed.text.trimEnd().split('\n')
    expect(lines).toEqual([
      expect.stringMatching(new RegExp(`GET ${upstream.url}/contacts/2  404 error  \\d+ ms  call  ${failed}`)),
      expect.stringMatching(new RegExp(`GET ${upstream.url}/contacts/3  200 success  \\d+ ms  call  ${last}$`)),
    ])
    printed.text = ''
    expect(await calls('--class', 'error')).toBe(0)
    expect(printed.text).toContain(failed)
    expect(printed.text).not.toContain(first)
  })

  it.each([
    ['an account that is no id', ['--account', 'acme']],
    ['a run that is no id', ['--run', '7']],
    ['a class that there is not', ['--class', 'sucess']],
    ['a limit of none', ['--limit', '0']],
    ['a cause that there is not', ['--cause', 'tokens']],
    ['an id and a filter', ['--failed', newId()]],
    ['a time that is none', ['--since', 'yesterday']],
    ['a command of curl for many', ['--curl']],
  ])('does not take %s', async (_, args) => {
    expect(await calls(...args)).not.toBe(0)
    expect(printed.text).toContain(String(args[0]))
  })

  it('says that an account or run is not there', async () => {
    for (const option of ['--account', '--run']) {
      printed.text = ''
      expect(await calls(option, newId())).not.toBe(0)
      expect(printed.text).toMatch(/no (?:integrated_account|sync_job_run) with id/)
    }
  })

  it('prints those that failed, by path and cause', async () => {
    const [ok, failed, other] = [await call('71'), await call('72', 404), await call('73', 404)]
    expect(await calls('--failed', '--path', '/CONTACTS/7', '--cause', 'call', '--limit', '2')).toBe(0)
    for (const id of [failed, other]) expect(printed.text).toContain(id)
    expect(printed.text).not.toContain(ok)
    printed.text = ''
    expect(await calls('--failed', '--path', '/contacts/72')).toBe(0)
    expect(printed.text).toContain(failed)
    expect(printed.text).not.toContain(other)
  })

  it('shows one request whole, by the id that an error names', async () => {
    const id = await call('4', 404)
    expect(await calls(id)).toBe(0)
    for (const part of ['404 error', `method: contacts.get`, 'phases: ', '> authorization: ***', '< 404', '{}'])
      expect(printed.text).toContain(part)
    printed.text = ''
    expect(await calls(newId())).not.toBe(0)
    expect(printed.text).toContain('no call_log_entry with id')
  })

  it('reads pages until as many are shown as were asked for, from a moment on', async () => {
    const before = await call('5')
    const since = new Date(Date.now() + 1).toISOString()
    await expect.poll(() => Date.now()).toBeGreaterThan(Date.parse(since))
    const after = await call('6')
    expect(await calls('--account', accountId, '--since', since, '--limit', '5000')).toBe(0)
    expect(printed.text).toContain(after)
    expect(printed.text).not.toContain(before)
  })

  it('follows what is sent from now on, until it is interrupted', async () => {
    await using following = new CommandProcess(['calls', '--account', accountId, '--follow'], environment)
    const ids: string[] = []
    // Requests from before the stream has begun are not in it.
    await expect
      .poll(async () => {
        ids.push(await call(`f${ids.length}`))
        return ids.some((id) => following.output.includes(id))
      })
      .toBe(true)
    following.child.kill('SIGINT')
    expect((await following.ended).exitCode).toBe(130)
  })
})
