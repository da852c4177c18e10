/** How a third party may repeat what it was sent. */
export const SECRET_ENCODINGS: Readonly<Record<string, (secret: string) => string>> = {
  'as it is': (secret) => secret,
  'in capitals': (secret) => secret.replace(/[a-zà-öø-þ]/g, (letter) => letter.toUpperCase()),
  'percent-encoded': encodeURIComponent,
  'percent-encoded in small letters': (secret) =>
    encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
  'every byte percent-encoded': (secret) => Buffer.from(secret).toString('hex').replace(/../g, '%$&'),
  'percent-encoded twice': (secret) => encodeURIComponent(encodeURIComponent(secret)),
  'as a form': (secret) => new URLSearchParams({ v: secret }).toString().slice(2),
  'in JSON': (secret) => JSON.stringify(secret).slice(1, -1),
  'in JSON within JSON': (secret) => JSON.stringify(JSON.stringify(secret)).slice(3, -3),
  'in JSON with escaped slashes': (secret) => JSON.stringify(secret).slice(1, -1).replaceAll('/', '\\/'),
  'in JSON, every character escaped': (secret) =>
    Array.from({ length: secret.length }, (_, at) => `\\u${secret.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  'in HTML': (secret) => secret.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`),
  'in XML': (secret) =>
    secret.replace(
      /[&<>"']/g,
      (character) => `&${{ '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' }[character]};`,
    ),
  'in base64': (secret) => Buffer.from(secret).toString('base64'),
  'in base64url': (secret) => Buffer.from(secret).toString('base64url'),
  'in Basic, after a name': (secret) => Buffer.from(`user:${secret}`).toString('base64'),
  'in Basic, after another name': (secret) => Buffer.from(`users:${secret}`).toString('base64'),
  'in Basic, before a password': (secret) => Buffer.from(`${secret}:x`).toString('base64'),
  'in percent-encoded Basic': (secret) => encodeURIComponent(Buffer.from(`u:${secret}`).toString('base64')),
  'in hexadecimal': (secret) => Buffer.from(secret).toString('hex'),
  'in capital hexadecimal': (secret) => Buffer.from(secret).toString('hex').toUpperCase(),
}
