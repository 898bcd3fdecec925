/** The trainings of trainings.mjs, which needs the built package. */
export const TRAININGS = ['workers', 'gpt', 'gpt2', 'lstm', 'unet', 'resnet', 'vit', 'fsdp']
