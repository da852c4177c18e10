/**
 * What hides secrets in text and JSON before it is stored, logged or sent: matching of known secrets in every encoding
 * they may appear in. Never: storing or encrypting them (`secrets/`).
 */

export { Redactor, SECRET_MASK } from './redactor.ts'
