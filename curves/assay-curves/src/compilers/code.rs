//! Machine code of a function: instructions, size, stack use.

use anyhow::{Context as _, Result, ensure};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol};

/// Static counts of a function's machine code; the instructions of a loop are counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bytes: u64,
    /// All instructions but padding and landing pads (`nop`, `endbr64`).
    pub(super) instructions: u64,
    pub(super) mulx: u64,
    /// `mul` and `imul`.
    pub(super) mul: u64,
    /// `adc` and `sbb`.
    pub(super) adc: u64,
    pub(super) adcx: u64,
    pub(super) adox: u64,
    /// Carries saved in a register: `setb`, `setae`, `seto`, `setno`.
    pub(super) saved_carries: u64,
    /// Accesses to the stack other than pushes and pops.
    pub(super) stack_accesses: u64,
    /// Conditional jumps.
    pub(super) branches: u64,
    pub(super) calls: u64,
    /// Maximum depth below the return address in bytes: pushes, `sub rsp`, and the used part of the red zone.
    pub(super) stack_bytes: u64,
}

/// Machine code of a function in a program, and its address.
pub(super) fn function<'d>(file: &object::File<'d>, name: &str) -> Result<(&'d [u8], u64)> {
    let is_it = |symbol: &object::Symbol<'d, '_>| symbol.size() > 0 && symbol.name() == Ok(name);
    let find = || {
        let symbol = file.symbols().find(is_it)?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let bytes = section.data_range(symbol.address(), symbol.size()).ok()??;
        Some((bytes, symbol.address()))
    };
    find().with_context(|| format!("the program has no function {name} with a size"))
}

impl Code {
    /// Counts a function's bytes, which begin at `address`.
    pub(super) fn of(bytes: &[u8], address: u64) -> Result<Self> {
        let mut code = Self { bytes: bytes.len() as u64, ..Self::default() };
        let mut stack = Stack::default();
        for instruction in &mut Decoder::with_ip(64, bytes, address, DecoderOptions::NONE) {
            ensure!(
                !instruction.is_invalid(),
                "byte {} of the function is no instruction that is known",
                instruction.ip() - address
            );
            code.count(&instruction);
            stack.follow(&instruction);
        }
        code.stack_bytes = stack.most.unsigned_abs();
        Ok(code)
    }

    fn count(&mut self, instruction: &Instruction) {
        let counter = match instruction.mnemonic() {
            Mnemonic::Nop | Mnemonic::Endbr64 => return,
            Mnemonic::Mulx => Some(&mut self.mulx),
            Mnemonic::Mul | Mnemonic::Imul => Some(&mut self.mul),
            Mnemonic::Adc | Mnemonic::Sbb => Some(&mut self.adc),
            Mnemonic::Adcx => Some(&mut self.adcx),
            Mnemonic::Adox => Some(&mut self.adox),
            Mnemonic::Setb | Mnemonic::Setae | Mnemonic::Seto | Mnemonic::Setno => {
                Some(&mut self.saved_carries)
            }
            Mnemonic::Call => Some(&mut self.calls),
            mnemonic if is_branch(mnemonic) => Some(&mut self.branches),
            _ => None,
        };
        if let Some(counter) = counter {
            *counter += 1;
        }
        self.instructions += 1;
        let is_access = instruction.mnemonic() != Mnemonic::Lea;
        self.stack_accesses += u64::from(is_access && stack_operand(instruction).is_some());
    }
}

fn is_branch(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Ja
            | Mnemonic::Jae
            | Mnemonic::Jb
            | Mnemonic::Jbe
            | Mnemonic::Je
            | Mnemonic::Jne
            | Mnemonic::Jg
            | Mnemonic::Jge
            | Mnemonic::Jl
            | Mnemonic::Jle
            | Mnemonic::Jo
            | Mnemonic::Jno
            | Mnemonic::Js
            | Mnemonic::Jns
            | Mnemonic::Jp
            | Mnemonic::Jnp
            | Mnemonic::Jrcxz
            | Mnemonic::Jecxz
            | Mnemonic::Loop
            | Mnemonic::Loope
            | Mnemonic::Loopne
    )
}

/// Displacement from `rsp` of a memory operand.
fn stack_operand(instruction: &Instruction) -> Option<i64> {
    let has_memory =
        (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    (has_memory && instruction.memory_base() == Register::RSP)
        .then(|| instruction.memory_displacement64() as i64)
}

/// Depth of the stack pointer below the return address, over the instructions in order of address.
#[derive(Debug, Default)]
struct Stack {
    depth: i64,
    /// Maximum so far; code after a return is taken to start at this depth.
    deepest: i64,
    /// Maximum including the red zone.
    most: i64,
}

impl Stack {
    fn follow(&mut self, instruction: &Instruction) {
        if let Some(below) = stack_operand(instruction).filter(|displacement| *displacement < 0) {
            self.most = self.most.max(self.depth.saturating_sub(below));
        }
        let moves_by_constant = instruction.op_count() == 2
            && instruction.op0_register() == Register::RSP
            && instruction.op1_kind() != OpKind::Register
            && instruction.op1_kind() != OpKind::Memory;
        match instruction.mnemonic() {
            Mnemonic::Push => self.depth += 8,
            Mnemonic::Pop => self.depth -= 8,
            Mnemonic::Sub if moves_by_constant => self.depth += instruction.immediate(1) as i64,
            Mnemonic::Add if moves_by_constant => self.depth -= instruction.immediate(1) as i64,
            Mnemonic::Ret => self.depth = self.deepest,
            _ => {}
        }
        self.deepest = self.deepest.max(self.depth);
        self.most = self.most.max(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// gcc 12 at -O2, `add256` of the report.
    const GCC_ADD256: &[u8] = &[
        0x31, 0xc0, // xor eax, eax
        0x31, 0xc9, // xor ecx, ecx
        0x48, 0x8b, 0x14, 0x07, // mov rdx, [rdi + rax]
        0x80, 0xc1, 0xff, // add cl, 0xff
        0x48, 0x13, 0x14, 0x06, // adc rdx, [rsi + rax]
        0x48, 0x89, 0x14, 0x07, // mov [rdi + rax], rdx
        0x0f, 0x92, 0xc1, // setb cl
        0x48, 0x83, 0xc0, 0x08, // add rax, 8
        0x48, 0x83, 0xf8, 0x20, // cmp rax, 0x20
        0x75, 0xe4, // jne
        0xc3, // ret
    ];

    #[test]
    fn a_loop_that_saves_its_carry() {
        let code = Code::of(GCC_ADD256, 0x1000).expect("code");
        let expected = Code {
            bytes: 33,
            instructions: 11,
            adc: 1,
            saved_carries: 1,
            branches: 1,
            ..Code::default()
        };
        assert_eq!(code, expected);
    }

    #[test]
    fn stack_of_pushes_subtractions_and_the_red_zone() {
        let code = [
            0xf3, 0x0f, 0x1e, 0xfa, // endbr64
            0x41, 0x57, // push r15
            0x53, // push rbx
            0x48, 0x83, 0xec, 0x20, // sub rsp, 32
            0x48, 0x89, 0x04, 0x24, // mov [rsp], rax
            0xc4, 0xe2, 0xfb, 0xf6, 0x4c, 0x24, 0xf0, // mulx rcx, rax, [rsp - 16]
            0x66, 0x48, 0x0f, 0x38, 0xf6, 0xc8, // adcx rcx, rax
            0xf3, 0x48, 0x0f, 0x38, 0xf6, 0xc8, // adox rcx, rax
            0x48, 0x83, 0xc4, 0x20, // add rsp, 32
            0x5b, // pop rbx
            0x41, 0x5f, // pop r15
            0xc3, // ret
            0x90, // nop
        ];
        let found = Code::of(&code, 0).expect("code");
        assert_eq!((found.mulx, found.adcx, found.adox, found.stack_accesses), (1, 1, 1, 2));
        assert_eq!((found.stack_bytes, found.instructions), (8 + 8 + 32 + 16, 11));
    }

    #[test]
    fn undecodable_code() {
        let error = Code::of(&[0x90, 0x06], 0).expect_err("0x06 was a push once");
        assert_eq!(error.to_string(), "byte 1 of the function is no instruction that is known");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn functions_are_found_in_programs() {
        let program = std::fs::read(std::env::current_exe().expect("it runs")).expect("readable");
        let file = object::File::parse(&program[..]).expect("ELF");
        let error = function(&file, "no_such_function").expect_err("no program has it");
        assert!(error.to_string().contains("no function no_such_function"), "{error}");
        assert!(!function(&file, "main").expect("every program has one").0.is_empty());
    }
}
