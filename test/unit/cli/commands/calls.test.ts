import { afterAll, afterEach, describe, expect, it } from 'vitest'
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
