// The live page of a training: a server on this machine only, which ends with the run. It tells listeners what it is told, by server-sent events, and everything from the beginning to
// those that come later.
import type { Server } from 'node:http'
import { ArgumentError, UnsupportedError } from '../errors/index.ts'
import { escapeHtml, htmlDocument, sheetOf } from '../fx/viewer/document.ts'
import { PAGE_SCRIPT, PAGE_STYLE } from './generated/page.ts'
import { textOf } from './page/data.ts'
import type { LivePoint, RunFacts, StepPoint } from './page/data.ts'

/** How many steps a listener that comes late is told: of more, every second one is forgotten. */
const MOST_STEPS = 2000

/** The page. Nothing may be loaded from elsewhere. */
function pageOf(facts: RunFacts): string {
  const title = `Training ${facts.model}`
  return htmlDocument({
    title,
    sheet: sheetOf(PAGE_STYLE),
    script: PAGE_SCRIPT,
    data: facts,
    body: `<header><div class="title"><h1>${escapeHtml(title)}</h1><span id="state" role="status">connecting</span><span class="about">${facts.parameters.toLocaleString('en')} parameters</span></div>
<dl id="figures"></dl><progress id="progress" max="1" value="0" aria-label="Progress"></progress></header>
<main><div id="charts"></div>
<section id="weights" class="card" hidden><header><h2>Parameters</h2><span id="weightsStep"></span></header><div class="scroll"><table><thead><tr><th>name</th><th>shape</th><th>norm</th><th>gradient</th><th>values</th></tr></thead><tbody id="rows"></tbody></table></div></section></main>
<noscript>This page draws with JavaScript.</noscript>`,
  })
}

const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
}

/** A page that is served. */
export interface LivePage {
  readonly url: string
  /** Tells all listeners, and those to come. */
  tell(point: LivePoint): void
  /** Tells how the training ended, and closes the server. */
  end(text: string): Promise<void>
}

/** Begins to listen. Throws ArgumentError for a port that cannot be taken. */
const listen = (server: Server, port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    // It stays: an error of a server that listens must not end the training.
    server.on('error', (cause) =>
      reject(
        new ArgumentError(
          `fit: option 'page.port' must be a port that this program can listen on, got ${port} (${cause.message}); leave it out for any that is free.`,
          { cause },
        ),
      ),
    )
    server.listen(port, '127.0.0.1', () => resolve())
  })

/** Serves a page on 127.0.0.1. Port 0 is any that is free. Throws ArgumentError for a port that cannot be taken, and UnsupportedError where there is no server to start. */
export async function servePage(facts: RunFacts, port: number): Promise<LivePage> {
  const http = globalThis.process?.getBuiltinModule?.('node:http')
  if (http === undefined) throw new UnsupportedError("fit: option 'page': no page can be served here; in a browser draw in onStep and onEpoch.")
  const page = pageOf(facts)
  let steps: StepPoint[] = []
  let others: LivePoint[] = []
  const listeners = new Set<{ write(text: string): unknown; end(): unknown }>()
  const eventOf = (point: LivePoint): string => `data: ${textOf(point)}\n\n`

  const server = http.createServer((request, response) => {
    // A name of another site that leads here must not read the page.
    const host = String(request.headers.host).replace(/:\d+$/, '')
    const refuse = (status: number): void => void response.writeHead(status, HEADERS).end()
    if (host !== '127.0.0.1' && host !== 'localhost') return refuse(403)
    if (request.method !== 'GET') return refuse(405)
    if (request.url === '/') return void response.writeHead(200, { ...HEADERS, 'content-type': 'text/html; charset=utf-8' }).end(page)
    if (request.url !== '/events') return refuse(404)
    response.writeHead(200, { ...HEADERS, 'content-type': 'text/event-stream' })
    response.write([...steps, ...others].map(eventOf).join(''))
    listeners.add(response)
    response.on('close', () => listeners.delete(response))
  })
  await listen(server, port)
  // The program ends when its training does, whoever looks on.
  server.unref()
  server.on('connection', (socket) => socket.unref())
  const address = server.address()

  const tell = (point: LivePoint): void => {
    if (point.kind === 'step') {
      steps.push(point)
      if (steps.length > MOST_STEPS) steps = steps.filter((_, i) => i % 2 === 0 || i === steps.length - 1)
    } else others = [...others.filter(({ kind }) => kind !== 'weights' || point.kind !== 'weights'), point]
    const text = eventOf(point)
    for (const listener of listeners) listener.write(text)
  }
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : port}/`,
    tell,
    async end(text) {
      tell({ kind: 'end', text })
      for (const listener of listeners) listener.end()
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        // What a listener has not read yet is sent before its connection ends.
        setTimeout(() => server.closeAllConnections(), 100)
      })
    },
  }
}
