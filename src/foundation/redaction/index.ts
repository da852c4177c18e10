/**
 * Redaction: finds known secrets in texts and JSON, in every encoding they may appear in, and masks them.
 *
 * A module of its own, below `proxy`, which knows no database. Never here: storing or encrypting secrets (`foundation/secrets/`).
 */

export { Redactor, SECRET_MASK } from './redactor.ts'
