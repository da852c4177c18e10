/** What stands in an answer where a secret is stored. It is never accepted as a value. */
export const SECRET_MASK = '***'
