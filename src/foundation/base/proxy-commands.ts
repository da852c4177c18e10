/**
 * Headers of an answer that reverse proxies and web servers obey and do not pass on: nginx (`X-Accel-Redirect` sends a file or an
 * internal location instead of the answer), Apache and LiteSpeed (`X-Sendfile`), lighttpd, Perlbal.
 */
const COMMANDS = /^x-(?:accel-.*|sendfile.*|lighttpd-send-?file|litespeed-.*|reproxy-.*)$/

/**
 * Tells whether a header of an answer commands the reverse proxy in front of this service. Third parties and definitions must not set
 * one.
 *
 * @param name in lower case
 */
export function isProxyCommand(name: string): boolean {
  return COMMANDS.test(name)
}
