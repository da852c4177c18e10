import type { Installation } from './installation.ts'

/** The public address by nginx with its default settings. @param target where requests below `/pb/` go */
export function frontServer({ frontPort, files }: Installation, target: string, also = ''): string {
  return `
  server {
    listen 127.0.0.1:${frontPort} ssl;
    ssl_certificate ${files.cert}; ssl_certificate_key ${files.key};
    client_max_body_size 64m;
    ${also}
    location /pb/ {
      proxy_pass ${target};
    }
    location /internal/ { internal; return 200 'what only this proxy may show'; }
  }`
}

/** gRPC by nginx. @param target `grpc://…` or `grpcs://…` */
export function grpcServer({ files }: Installation, port: number, target: string): string {
  return `
  server {
    listen 127.0.0.1:${port} ssl http2;
    ssl_certificate ${files.cert}; ssl_certificate_key ${files.key};
    location / {
      grpc_pass ${target};
      grpc_ssl_verify on; grpc_ssl_trusted_certificate ${files.authority};
      grpc_ssl_name localhost; grpc_ssl_server_name on;
    }
  }`
}

/** Requests to the product with TLS by nginx. @param also further directives */
export function secureServer({ files, secure }: Installation, port: number, also: string): string {
  return `
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass https://127.0.0.1:${secure.port};
      proxy_ssl_verify on; proxy_ssl_trusted_certificate ${files.authority};
      proxy_ssl_name localhost; proxy_ssl_server_name on;
      ${also}
    }
  }`
}
