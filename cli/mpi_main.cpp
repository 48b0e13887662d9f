// kith-mpi: the commands of kith that several processes can share; started by mpirun or srun.
#include "mpi/mpi_communicator.hpp"
#include "program.hpp"

int main(int argc, char** argv) {
  kith::MpiCommunicator ranks(&argc, &argv);
  return kith::cli::run_program(argc, argv, &ranks);
}
