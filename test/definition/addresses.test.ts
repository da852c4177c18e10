import { describe, expect, it } from 'vitest'
import { listAddresses } from '../../src/definition/index.ts'

describe('the addresses of a config', () => {
  it('are those written out, wherever a call would go, and not those that depend on the account', () => {
    const config = {
      base_url: 'https://{{subdomain}}.example.com',
      logo: 'https://cdn.example.com/logo.png',
      resources: { files: { get: { method: 'get', path: '/f', base_url: 'https://files.example.com' } } },
      credentials: { format: 'oauth2', config: { auth: { tokenHost: 'http://10.0.0.1' } } },
    }
    expect(listAddresses(config, 'override')).toEqual([
      { path: 'override.resources.files.get.base_url', url: 'https://files.example.com' },
      { path: 'override.credentials.config.auth.tokenHost', url: 'http://10.0.0.1' },
    ])
  })
})
