//! The device memory of a batch.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, sys::CUdeviceptr};

use crate::device::calls::copy_to_device;
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::network::format::Format;
use crate::workload::network::tensor::Element;
use crate::workload::network::tensor::Tensor;
use crate::workload::transformer::model::{HEADS, HIDDEN, QKV, SEQUENCE, VOCABULARY, WIDTH};
use crate::workload::transformer::problem::Inference;
use crate::workload::transformer::verify::verified;

/// What a batch reads and writes: rows of tokens, but for what says otherwise.
pub(super) struct Memory {
    pub(super) gpu: Rc<Gpu>,
    pub(super) problem: Rc<Inference>,
    pub(super) format: Format,
    tokens: CudaSlice<u32>,
    parameters: Tensor,
    /// The parameters in BF16, where products read those.
    copies: Option<Tensor>,
    /// The residual, always f32, which each part of a layer adds to. In few kernels a part reads one
    /// of the two and writes the other; in one kernel per step the second is what is added to the
    /// first.
    pub(super) residual: [Tensor; 2],
    pub(super) normed: Tensor,
    pub(super) qkv: Tensor,
    /// What the heads give, side by side.
    pub(super) heads: Tensor,
    pub(super) hidden: Tensor,
    pub(super) logits: Tensor,
    pub(super) matrices: Option<Matrices>,
}

/// Of attention in a kernel for each step, where each head of each sequence is a matrix.
pub(super) struct Matrices {
    /// All queries, all keys, all values.
    pub(super) qkv: Tensor,
    pub(super) scores: Tensor,
    pub(super) results: Tensor,
}

impl Memory {
    pub(super) fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Inference>,
        format: Format,
        fused: bool,
    ) -> Result<Self, CudaError> {
        let element = format.element();
        let rows = |element, width| Tensor::zeros(gpu, element, problem.rows() * width);
        let matrices = match fused {
            true => None,
            false => Some(Matrices {
                qkv: rows(Element::F32, QKV)?,
                scores: rows(Element::F32, HEADS * SEQUENCE)?,
                results: rows(Element::F32, WIDTH)?,
            }),
        };
        let memory = Self {
            tokens: gpu.upload(&problem.tokens)?,
            parameters: Tensor::of(gpu, Element::F32, &problem.parameters)?,
            copies: match element {
                Element::F32 => None,
                Element::Bf16 => Some(Tensor::of(gpu, Element::Bf16, &problem.parameters)?),
            },
            residual: [rows(Element::F32, WIDTH)?, rows(Element::F32, WIDTH)?],
            normed: rows(element, WIDTH)?,
            qkv: rows(element, QKV)?,
            heads: rows(element, WIDTH)?,
            hidden: rows(element, HIDDEN)?,
            logits: rows(element, VOCABULARY)?,
            matrices,
            gpu: gpu.clone(),
            problem: problem.clone(),
            format,
        };
        gpu.synchronize()?;
        Ok(memory)
    }

    pub(super) fn tokens(&self) -> CUdeviceptr {
        self.tokens.device_ptr(self.gpu.stream()).0
    }

    /// Parameters as values of this type.
    ///
    /// # Panics
    /// In BF16 where no product reads that.
    pub(super) fn parameters(&self, element: Element, range: &Range<usize>) -> CUdeviceptr {
        match element {
            Element::F32 => self.parameters.at(range.start),
            Element::Bf16 => {
                let copies = self.copies.as_ref().expect("made for this format");
                copies.at(range.start)
            }
        }
    }

    fn written(&self) -> impl Iterator<Item = &Tensor> {
        let [one, other] = &self.residual;
        let (normed, qkv, heads) = (&self.normed, &self.qkv, &self.heads);
        let matrices = self.matrices.iter();
        [one, other, normed, qkv, heads, &self.hidden, &self.logits]
            .into_iter()
            .chain(matrices.flat_map(|m| [&m.qkv, &m.scores, &m.results]))
    }

    /// Enqueues that everything that a batch writes becomes NaN.
    pub(super) fn poison(&self) -> Result<(), CudaError> {
        self.written().try_for_each(Tensor::poison)
    }

    /// Enqueues that all tokens become the first of the vocabulary, so that an upload that never
    /// happens shows. With an invalid token the kernels would read far beyond the embedding.
    pub(super) fn poison_tokens(&mut self) -> Result<(), CudaError> {
        let zeros = vec![0; self.tokens.len()];
        let to = self.tokens();
        // SAFETY: the slice has that many tokens, and the wait keeps the zeros alive.
        unsafe { copy_to_device(&zeros, to, self.gpu.stream()) }?;
        self.gpu.synchronize()
    }

    /// Compares the logits in device memory with float64.
    pub(super) fn check(&self) -> Result<Verified, CudaError> {
        Ok(self.check_logits(&self.logits.values()?))
    }

    /// Compares logits that were downloaded before.
    pub(super) fn check_logits(&self, logits: &[f32]) -> Verified {
        verified(&self.problem, self.format, logits)
    }

    /// Bytes of the parameters with their copies.
    pub(super) fn bytes_of_parameters(&self) -> usize {
        self.parameters.bytes() + self.copies.as_ref().map_or(0, Tensor::bytes)
    }

    /// Bytes of the tokens and of what lies between the kernels.
    pub(super) fn bytes_of_activations(&self) -> usize {
        self.tokens.num_bytes() + self.written().map(Tensor::bytes).sum::<usize>()
    }
}
