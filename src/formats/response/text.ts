import { type ResponseFormat, utf8 } from './response.ts'

/** `text`: the body as one string. */
export const text: ResponseFormat = {
  format: 'text',
  summary: 'The body as one text.',
  accept: '*/*',
  decode: utf8,
}
