// The kinds of programs, by name. A kind may have `setup` (before f), `tensors` (changes f's tensor arguments), `parameters` (adds others), `write` (one
// random statement; false if there is none), `finish` (the end of f), `result` (what f returns), `before` and `after` (around each call).
import { dtypes, pointwise, reductions, table, templates, views } from './basis.mjs'
import { asyncParts, breaks, containers, defaultDtypes, modules, throwingCallbacks } from './calls.mjs'
import { branches, exceptions, generators, printing, shapes, structures, zeroSize } from './control.mjs'
import { aliases, closureNumbers, closureTensors, escapes, inplace, random } from './effects.mjs'
import { convolutions } from './convolutions.mjs'
import { controlFlow, moduleHooks, richFunctions, transforms } from './functions.mjs'
import { customFunctions, gradModes, gradients, hooks, optimizers, training } from './gradients.mjs'
import { byValues, images, indexing, layers, linearAlgebra, losses } from './layers.mjs'
import { sizes } from './sizes.mjs'
import { viewWrites } from './viewWrites.mjs'
import { windows } from './windows.mjs'

export const kinds = {
  pointwise,
  views,
  reductions,
  templates,
  dtypes,
  table,
  inplace,
  aliases,
  closureNumbers,
  closureTensors,
  escapes,
  random,
  branches,
  printing,
  exceptions,
  generators,
  structures,
  shapes,
  zeroSize,
  gradients,
  gradModes,
  customFunctions,
  hooks,
  optimizers,
  training,
  layers,
  indexing,
  images,
  convolutions,
  linearAlgebra,
  byValues,
  losses,
  containers,
  modules,
  breaks,
  defaultDtypes,
  asyncParts,
  throwingCallbacks,
  richFunctions,
  controlFlow,
  transforms,
  moduleHooks,
  viewWrites,
  sizes,
  windows,
}

/** Kinds that makeFx can trace: nothing in them depends on data, or on what changes between calls besides tensors. */
const traceable = [
  'pointwise',
  'views',
  'reductions',
  'templates',
  'dtypes',
  'table',
  'inplace',
  'closureTensors',
  'random',
  'shapes',
  'zeroSize',
  'generators',
  'layers',
  'indexing',
  'images',
  'convolutions',
  'linearAlgebra',
  'losses',
  'controlFlow',
  'gradModes',
  'viewWrites',
]

/** The kinds that each wrapper of f is made for. */
export const kindsFor = {
  compile: Object.keys(kinds).filter((name) => name !== 'sizes'),
  automatic: Object.keys(kinds),
  dynamic: Object.keys(kinds),
  makeFx: traceable,
  reinplace: traceable,
  aot: [...traceable, 'aliases', 'structures', 'gradients', 'transforms', 'containers'],
}
