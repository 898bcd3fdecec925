// A planted fault as files: a program and the module of its backend.
import { readFileSync } from 'node:fs'

const textOf = (name) => readFileSync(new URL(name, import.meta.url), 'utf8')

/** The text of a file of this folder, for a module that has no other files beside it. */
export const inlined = (name) => textOf(name).replace(/^export /gm, '')

/** The module that registers the backend `suspect`; `before` are statements that run first. */
export const backendModule = (distUrl, fault, before = '') => `
import { Tensor, noGrad, torch } from '${distUrl('index.js')}'
import { registerBackend } from '${distUrl('entries/compile.js')}'
import { Interpreter } from '${distUrl('entries/fx.js')}'
${before}
${inlined('faulty.mjs')}
registerBackend('suspect', faultyBackend({ Interpreter, Tensor, noGrad, torch }, ${JSON.stringify(fault)}), { module: import.meta.url })
`

/** A program that is compiled by that backend. */
export const programText = (distUrl, program) => `
import * as main from '${distUrl('index.js')}'
import { runProgram } from './models.mjs'
import './suspect.mjs'
runProgram(main, ${JSON.stringify(program)}, 'suspect')
console.log('the program ended')
`

export const filesOf = (distUrl, { program, fault }, before = '') => ({
  'models.mjs': textOf('models.mjs'),
  'program.mjs': programText(distUrl, program),
  'suspect.mjs': backendModule(distUrl, fault, before),
})
